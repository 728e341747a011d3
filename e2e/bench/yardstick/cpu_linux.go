package yardstick

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpu is what this process and all that it has started, such as a private
// PostgreSQL or Vault, have computed so far. Unlike the clock it does not run while
// neighbours have the cores. A server that somebody else started is not in it.
func cpu() (time.Duration, bool) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return 0, false
	}
	sum := time.Duration(own.Utime.Nano() + own.Stime.Nano())
	parents := parents()
	for pid := range parents {
		if !descends(pid, os.Getpid(), parents) {
			continue
		}
		ran, ok := threads(pid)
		if !ok {
			return 0, false
		}
		sum += ran
	}
	return sum, true
}

// threads is what all threads of a process have computed: the process's own
// schedstat is that of its first one, and a Vault computes on others. It is in
// nanoseconds; the ticks of stat are too coarse for short rounds.
func threads(pid int) (time.Duration, bool) {
	files, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "[0-9]*", "schedstat"))
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // ended
		}
		ran, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return 0, false
		}
		sum += time.Duration(ns)
	}
	return sum, len(files) > 0
}

// parents says of every process who started it.
func parents() map[int]int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	parents := make(map[int]int, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // gone
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		// The name, in brackets, may hold anything; then come state and parent.
		_, rest, _ := strings.Cut(string(text[strings.LastIndex(string(text), ")"):]), " ")
		fields := strings.Fields(rest)
		if len(fields) > 1 {
			parents[pid], _ = strconv.Atoi(fields[1])
		}
	}
	return parents
}

func descends(pid, from int, parents map[int]int) bool {
	for pid = parents[pid]; pid > 1; pid = parents[pid] {
		if pid == from {
			return true
		}
	}
	return false
}
