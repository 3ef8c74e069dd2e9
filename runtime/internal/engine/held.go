package engine

import (
	"reflect"
	"unsafe"

	"github.com/tetratelabs/wazero/api"
)

const (
	// instanceBytes is the size of the parts of an instance that are not measured: objects of a fixed size, maps and
	// contexts.
	instanceBytes = 10 << 10
	pointerBytes  = int64(unsafe.Sizeof(uintptr(0)))
	// mappingBytes is the size of a mapping in the system.
	mappingBytes = 256
)

// mostMappings bounds the mappings of idle instances, and those of images. A process has 65,530 on Linux, if the system
// was not told otherwise, and the Go runtime ends it when there is none left.
const mostMappings = 16 << 10

// mappings returns the number of mappings of the memories of the instance and its dependencies.
func (i *instance) mappings() (mappings int64) {
	for one := range i.all {
		mappings += one.memory.mappings()
	}
	return mappings
}

func (m *linearMemory) mappings() int64 {
	if m.image == nil {
		return 1
	}
	return m.image.mappings()
}

// held returns the number of private bytes that an idle instance and its dependencies hold, or false if that is not
// known.
func (i *instance) held() (bytes int64, known bool) {
	stacks, known := i.nativeStacks()
	if !known || i.heap == 0 {
		return 0, false
	}
	held := instanceBytes + i.heap + stacks + i.savedStacks() + i.memory.held()
	for _, d := range i.dependencies {
		bytes, known := d.held()
		if !known {
			return 0, false
		}
		held += bytes
	}
	return held, true
}

// nativeStacks returns the size of the native stacks of the functions that the instance keeps, or false if it is not
// known.
func (i *instance) nativeStacks() (bytes int64, known bool) {
	for _, f := range [...]*exported{&i.start, &i.called} {
		if f.Function == nil {
			continue
		}
		stack, known := f.stackBytes()
		if !known {
			return 0, false
		}
		bytes += stack
	}
	return bytes, true
}

// savedStacks returns the size of a started program's saved stacks. It leaves out the stack on which its function runs,
// which nativeStacks counts: after a resumption, that is a saved one.
func (i *instance) savedStacks() (bytes int64) {
	for _, s := range [...]*savedStack{i.stack, i.outermost} {
		if s == nil {
			continue
		}
		bytes += int64(len(s.before))
		if i.called.Function == nil || s.base != i.called.stack.Pointer() {
			bytes += int64(s.size)
		}
	}
	return bytes
}

// held returns the number of private bytes that the memory holds, including the cost of finding and mapping them.
func (m *linearMemory) held() int64 {
	return m.kept + m.written.held() + mappingBytes*m.mappings()
}

// heapOf returns the number of bytes that an instance of wazero takes of the Go heap for its globals, tables, segments
// and references to functions, or 0 if that is not known. wazero v1.12.0 does not export them. They do not change,
// unless instructions change tables or use segments, and then the instance is not kept.
func heapOf(made api.Module) (bytes int64) {
	instance := structOf(reflect.ValueOf(made))
	globals, tables, elements := field(instance, "Globals"), field(instance, "Tables"), field(instance, "ElementInstances")
	engine := engineOf(instance)
	opaque, references, imports := field(engine, "opaque"), field(engine, "localFunctionInstances"),
		field(engine, "importedFunctions")
	for _, list := range [...]reflect.Value{globals, tables, elements, opaque, references, imports} {
		if list.Kind() != reflect.Slice {
			return 0
		}
	}
	for n := range tables.Len() {
		held := field(structOf(tables.Index(n)), "References")
		if held.Kind() != reflect.Slice {
			return 0
		}
		bytes += pointerBytes * int64(held.Cap())
		// An export of a table makes wazero note the instance with the table once more.
		involved := field(structOf(tables.Index(n)), "involvingModuleInstances")
		if involved.Kind() != reflect.Slice {
			return 0
		}
		bytes += pointerBytes * int64(involved.Cap())
	}
	for n := range elements.Len() {
		bytes += pointerBytes * int64(elements.Index(n).Cap())
	}
	for _, list := range [...]reflect.Value{globals, tables, elements, opaque, references, imports} {
		element := list.Type().Elem()
		bytes += int64(list.Cap()) * int64(element.Size())
		if element.Kind() == reflect.Pointer {
			bytes += int64(list.Len()) * int64(element.Elem().Size())
		}
	}
	return bytes
}

// nativeCodeOf returns the size of the native code of an instance of wazero, or 0 if that is not known.
func nativeCodeOf(made api.Module) int64 {
	engine := engineOf(structOf(reflect.ValueOf(made)))
	code := field(structOf(field(structOf(field(engine, "parent")), "executables")), "executable")
	if code.Kind() != reflect.Slice {
		return 0
	}
	return int64(code.Cap())
}

// engineOf returns the state of an instance in wazero's compiler, or the zero value.
func engineOf(instance reflect.Value) reflect.Value {
	engine := field(instance, "Engine")
	if engine.Kind() != reflect.Interface {
		return reflect.Value{}
	}
	return structOf(engine.Elem())
}
