package startup_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// confinedUser is who a confined relay runs as where root runs the tests: nobody, as
	// Debian numbers that user and its group.
	confinedUser = 65534
	// confinedRoot is where a confined relay has its folder: a path whose every part
	// anybody may enter, which is not so of a test's own.
	confinedRoot = "/mnt"

	// What confine ends with when it becomes no relay.
	cannotConfine = 97 // this machine does not let it
	notConfined   = 98 // it did, and something can be written all the same
)

// confine takes everything from this process but what a relay needs, and becomes it:
// every mount of a namespace of its own is read only, and there is no privilege left nor
// one to be had. Its arguments are the folder of a rig, which the relay finds at
// confinedRoot, and the relay's command. It returns only when that fails.
//
// It is started in a mount namespace that nobody else is in, as root or with
// confinedPowers in a user namespace.
func confine(arguments []string) int {
	runtime.LockOSThread() // what is given up here is given up by a thread
	folder, program, rest := arguments[0], arguments[1], arguments[2:]
	if err := errors.Join(furnish(folder, program), sealMounts()); err != nil {
		fmt.Fprintln(os.Stderr, "confine:", err)
		return cannotConfine
	}
	// While every privilege is there still.
	if err := probeWrites(); err != nil {
		fmt.Fprintln(os.Stderr, "confine:", err)
		return notConfined
	}
	if err := giveUpPrivileges(); err != nil {
		fmt.Fprintln(os.Stderr, "confine:", err)
		return cannotConfine
	}
	at := confinedRoot + "/relay"
	environment := []string{}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, confinedVariable+"=") {
			environment = append(environment, variable)
		}
	}
	err := os.Chdir(confinedRoot + "/work")
	if err == nil {
		err = syscall.Exec(at, append([]string{at}, rest...), environment)
	}
	fmt.Fprintln(os.Stderr, "confine:", err)
	return cannotConfine
}

// furnish puts the relay and copies of its files where it may read them.
func furnish(folder, program string) error {
	// What is mounted from here on, nobody else sees.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("relay", confinedRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mount a folder: %w", err)
	}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		about, err := d.Info()
		if err != nil {
			return err
		}
		to := confinedRoot + strings.TrimPrefix(path, folder)
		if d.IsDir() {
			err = os.Mkdir(to, about.Mode().Perm())
		} else {
			var content []byte
			if content, err = os.ReadFile(path); err == nil {
				err = os.WriteFile(to, content, about.Mode().Perm())
			}
		}
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(to, confinedUser, confinedUser)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("copy the relay's files: %w", err)
	}
	at := confinedRoot + "/relay"
	if err := os.WriteFile(at, nil, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(program, at, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount the relay: %w", err)
	}
	return nil
}

// sealMounts makes every mount read only, those too that others lie over.
func sealMounts() error {
	err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return fmt.Errorf("make mounts read only (Linux 5.12): %w", err)
	}
	return nil
}

// probeWrites returns an error unless every mount is said to be read only and takes no
// file.
func probeWrites() error {
	all, err := mounts("self")
	if err != nil {
		return err
	}
	places := []string{"/", "/tmp", "/var/tmp", "/dev/shm", "/run",
		confinedRoot, confinedRoot + "/work", confinedRoot + "/tmp", confinedRoot + "/home", confinedRoot + "/etc"}
	for _, m := range all {
		if !m.readOnly {
			return fmt.Errorf("%s is mounted with %s", m.at, m.options)
		}
		places = append(places, m.at)
	}
	for _, place := range places {
		about, err := os.Stat(place)
		if err != nil {
			continue // another mount lies over it, or it is not for this user
		}
		if !about.IsDir() && !about.Mode().IsRegular() {
			continue // a device is no place for files
		}
		if err := unix.Access(place, unix.W_OK); os.Getuid() == 0 && !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("%s is not refused to root for being read only: %w", place, err)
		}
		if about.IsDir() {
			place += "/.written"
		}
		if file, err := os.OpenFile(place, os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
			file.Close()
			return fmt.Errorf("%s can be written", place)
		}
	}
	return nil
}

// mount is one line of a process's mountinfo, proc_pid_mountinfo(5).
type mount struct {
	at, options string
	readOnly    bool
}

// mounts returns the mounts that a process sees, by its id or "self".
func mounts(process string) ([]mount, error) {
	file, err := os.Open("/proc/" + process + "/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []mount
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		columns := strings.Fields(lines.Text())
		if len(columns) < 6 {
			return nil, fmt.Errorf("mountinfo: %q", lines.Text())
		}
		at := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(columns[4])
		all = append(all, mount{at, columns[5], strings.HasPrefix(columns[5]+",", "ro,")})
	}
	if err := lines.Err(); err != nil || len(all) == 0 {
		return nil, fmt.Errorf("mountinfo: %d mounts: %w", len(all), err)
	}
	return all, nil
}

// giveUpPrivileges empties every set of capabilities for good, and becomes nobody where
// it is root.
func giveUpPrivileges() error {
	for capability := uintptr(0); ; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && capability > unix.CAP_SETPCAP {
			break // the kernel knows no more of them
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	if os.Getuid() == 0 {
		err := errors.Join(syscall.Setgroups(nil),
			syscall.Setresgid(confinedUser, confinedUser, confinedUser), syscall.Setresuid(confinedUser, confinedUser, confinedUser))
		if err != nil {
			return fmt.Errorf("become another user: %w", err)
		}
	}
	var none [2]unix.CapUserData // of 32 capabilities each
	version := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return errors.Join(
		os.NewSyscallError("prctl", unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)),
		os.NewSyscallError("capset", unix.Capset(&version, &none[0])),
		os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)),
		// Another user's process has forgotten whose end it does not outlive.
		os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)),
	)
}
