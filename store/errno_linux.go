package store

import (
	"errors"
	"syscall"
)

const errNoMemory = syscall.ENOMEM

// recoverable reports whether a failed commit may simply be tried again: the
// disk was full, and bbolt gave back all it had taken.
func recoverable(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
