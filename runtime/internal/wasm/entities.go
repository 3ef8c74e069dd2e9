package wasm

// types reads the type section (§5.5.4).
func (i *inspection) types(r *reader) {
	i.module.Types = make([]FuncType, r.count("types", 3, i.bounds.Types))
	for n := range i.module.Types {
		i.module.Types[n] = r.functionType(i.bounds)
		if r.err != nil {
			return
		}
	}
}

// imports reads the import section (§5.5.5).
func (i *inspection) imports(r *reader) {
	i.module.Imports = make([]Import, r.count("imports", 4, i.bounds.Imports))
	for n := range i.module.Imports {
		i.module.Imports[n] = i.oneImport(r)
		if r.err != nil {
			return
		}
		i.imported[i.module.Imports[n].Kind]++
	}
}

func (i *inspection) oneImport(r *reader) Import {
	imported := Import{
		Module: r.name("the module of an import", i.bounds.NameBytes),
		Name:   r.name("the name of an import", i.bounds.NameBytes),
		Kind:   r.externKind("the kind of an import"),
	}
	if r.err != nil {
		return imported
	}
	switch imported.Kind {
	case ExternFunction:
		if index := r.index("type", len(i.module.Types)); r.err == nil {
			imported.Function = i.module.Types[index]
		}
	case ExternTable:
		imported.Table = r.table()
	case ExternMemory:
		imported.Memory = i.oneMemory(r)
	case ExternGlobal:
		imported.Global = r.global()
	}
	return imported
}

// externKind reads the kind of an import or export (§5.5.5, §5.5.10).
func (r *reader) externKind(what string) ExternKind {
	at := r.at
	kind := r.byte(what)
	switch {
	case r.err != nil:
	case kind == 4: // a tag
		r.unsupported(at, exceptionHandling, "a tag")
	case kind >= byte(externKinds):
		r.fail(ErrMalformed, at, "%s cannot be %#02x", what, kind)
	default:
		return ExternKind(kind)
	}
	return 0
}

// tables reads the table section (§5.5.7).
func (i *inspection) tables(r *reader) {
	i.module.Tables = make([]Table, r.count("tables", 3, i.bounds.Tables))
	elements := uint64(0)
	for n := range i.module.Tables {
		at := r.at
		i.module.Tables[n] = r.table()
		if r.err != nil {
			return
		}
		elements += uint64(i.module.Tables[n].Limits.Min)
		if elements > uint64(i.bounds.TableElements) {
			r.fail(ErrLimit, at, "the tables start with %d elements or more, the limit is %d", elements, i.bounds.TableElements)
			return
		}
	}
}

// memories reads the memory section (§5.5.8).
func (i *inspection) memories(r *reader) {
	for range r.count("memories", 2, r.left()) {
		memory := i.oneMemory(r)
		if r.err != nil {
			return
		}
		i.module.Memories = append(i.module.Memories, memory)
	}
}

// oneMemory reads a memory type, unless there is a memory already: core 2.0 has one at
// the most (§2.5.5).
func (i *inspection) oneMemory(r *reader) Limits {
	if i.size(ExternMemory) > 0 {
		r.unsupported(r.at, multipleMemories, "a second memory")
	}
	return r.memory()
}

// globals reads the global section (§5.5.9).
func (i *inspection) globals(r *reader) {
	i.module.Globals = make([]Global, r.count("globals", 3, i.bounds.Globals))
	for n := range i.module.Globals {
		i.module.Globals[n] = r.global()
		r.constantExpression()
		if r.err != nil {
			return
		}
	}
}

// exports reads the export section (§5.5.10). Names must differ (§3.4.10).
func (i *inspection) exports(r *reader) {
	i.module.Exports = make([]Export, r.count("exports", 3, i.bounds.Exports))
	seen := make(map[string]struct{})
	for n := range i.module.Exports {
		at := r.at
		export := Export{Name: r.name("the name of an export", i.bounds.NameBytes), Kind: r.externKind("the kind of an export")}
		if r.err == nil {
			export.Index = r.index(export.Kind.String(), i.size(export.Kind))
		}
		if r.err != nil {
			return
		}
		if _, twice := seen[export.Name]; twice {
			r.fail(ErrMalformed, at, "exports %q twice", export.Name)
			return
		}
		seen[export.Name] = struct{}{}
		i.module.Exports[n] = export
	}
}

// start reads the start section (§5.5.11).
func (i *inspection) start(r *reader) {
	i.module.Start = Start{Function: r.index("function", i.size(ExternFunction)), Present: true}
}
