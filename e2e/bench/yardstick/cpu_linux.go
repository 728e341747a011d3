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
// PostgreSQL, have computed so far. Unlike the clock it does not run while
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
		// In nanoseconds; the ticks of stat are too coarse for short rounds.
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "schedstat"))
		if err != nil {
			return 0, false
		}
		ran, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return 0, false
		}
		sum += time.Duration(ns)
	}
	return sum, true
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
