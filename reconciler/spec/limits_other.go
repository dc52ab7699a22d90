//go:build !linux

package spec

import "os"

func selfPath() (string, error) { return os.Executable() }

func killed(*os.ProcessState) bool { return false }
