//go:build postgres

package testcluster

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Disk is a small file system in memory, which can be filled.
type Disk struct {
	// Dir is its folder, as all processes of its owner see it, and Inside as those see it that begin with Enter.
	Dir, Inside string
	// Enter is what begins a command that sees Inside.
	Enter  []string
	as     *syscall.SysProcAttr
	holder *exec.Cmd
}

// NewDisk makes a disk. Stop must be called. It belongs to a process in a namespace of its own, since only there may
// users mount something.
func NewDisk(megabytes int) (*Disk, error) {
	d := &Disk{}
	return d, d.mount(megabytes)
}

func (d *Disk) mount(megabytes int) error {
	dir, err := os.MkdirTemp("", "caisson-disk-")
	if err != nil {
		return err
	}
	if d.as != nil {
		if err := os.Chown(dir, int(d.as.Credential.Uid), int(d.as.Credential.Gid)); err != nil {
			return err
		}
	}
	script := fmt.Sprintf("mount -t tmpfs -o size=%dm,mode=700 tmpfs %s && echo mounted && exec sleep 3600", megabytes,
		dir)
	d.holder = exec.Command("unshare", "-Um", "--map-current-user", "--keep-caps", "sh", "-c", script)
	d.holder.SysProcAttr = d.as
	output, err := d.holder.StdoutPipe()
	if err != nil {
		return err
	}
	d.holder.Stderr = os.Stderr
	if err := d.holder.Start(); err != nil {
		return err
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || strings.TrimSpace(line) != "mounted" {
		return fmt.Errorf("no file system can be mounted in a namespace: %q, %w", line, err)
	}
	pid := strconv.Itoa(d.holder.Process.Pid)
	d.Dir, d.Inside = "/proc/"+pid+"/root"+dir, dir
	d.Enter = []string{"nsenter", "-t", pid, "-U", "-m", "--preserve-credentials", "--"}
	return nil
}

// Fill leaves no space.
func (d *Disk) Fill() error {
	fill := exec.Command("sh", "-c", `dd if=/dev/zero of="$1" bs=4096 2>/dev/null; true`, "sh",
		filepath.Join(d.Dir, "fill"))
	fill.SysProcAttr = d.as
	return fill.Run()
}

// Free gives back what Fill has taken.
func (d *Disk) Free() error { return os.Remove(filepath.Join(d.Dir, "fill")) }

// Stop removes the disk with what it has.
func (d *Disk) Stop() error {
	err := d.holder.Process.Kill()
	_ = d.holder.Wait()
	return errors.Join(err, os.Remove(d.Inside))
}
