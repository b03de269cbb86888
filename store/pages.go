package store

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// bbolt maps the file into memory and trusts it: a page that is cut off or is
// not what it should be ends the process, in a goroutine of bbolt's own where
// nothing can catch it. So the tree is walked by reading before bbolt is let
// at it. Pages have the layout of bbolt's file format, version 2.
const (
	pageHeader = 16 // id 8, flags 2, count 2, overflow 4
	pageEntry  = 16 // of a branch page or a leaf page

	pageBranch = 0x01
	pageLeaf   = 0x02
	pageFree   = 0x10
	leafBucket = 0x01

	metaSize    = 64
	metaMagic   = 0xED0CDAED
	metaVersion = 2
)

// pageWalk follows every page that can be reached from the newest whole meta page.
type pageWalk struct {
	r    io.ReaderAt
	size int64 // of a page
	end  uint64
	seen []uint64 // a bit for each page
	free uint64   // the page that lists the free ones, or noFreelist
}

// alwaysWalk is the size up to which a file is walked at every open, in
// bytes. A larger one that was closed in order is not: opening it would take
// as long as reading it. `docket verify` does so at any time.
const alwaysWalk = 1 << 30

// noFreelist stands in a meta page whose free pages are not listed: the store
// was not closed in order.
const noFreelist = ^uint64(0)

// checkPages returns errDamaged, with where and what, unless each page of the
// tree lies in the file, is of its kind and keeps within its bounds. all also
// walks a large file that was closed in order.
func checkPages(r io.ReaderAt, fileSize int64, pageSize int, all bool) error {
	w := &pageWalk{r: r, size: int64(pageSize)}
	root, err := w.meta()
	if err != nil {
		return err
	}
	if have := uint64(fileSize / w.size); w.end > have {
		return fmt.Errorf("%w: it was cut off, there are %d pages of %d", errDamaged, have, w.end)
	}
	if w.free != noFreelist {
		if err := w.freelist(); err != nil || fileSize > alwaysWalk && !all {
			return err
		}
	}
	w.seen = make([]uint64, w.end/64+1)
	return w.page(root)
}

// meta returns the root page of the newest whole meta page.
func (w *pageWalk) meta() (root uint64, err error) {
	found := false
	var newest uint64
	for i := range int64(2) {
		var b [metaSize]byte
		if _, err := w.r.ReadAt(b[:], i*w.size+pageHeader); err != nil {
			continue
		}
		h := fnv.New64a()
		h.Write(b[:56])
		le := binary.LittleEndian
		if le.Uint32(b[:]) != metaMagic || le.Uint32(b[4:]) != metaVersion || le.Uint64(b[56:]) != h.Sum64() {
			continue
		}
		if txid := le.Uint64(b[48:]); !found || txid > newest {
			found, newest = true, txid
			root, w.end = le.Uint64(b[16:]), le.Uint64(b[40:])
			w.free = le.Uint64(b[32:])
		}
	}
	if !found {
		return 0, fmt.Errorf("%w: neither of its first two pages is whole", errDamaged)
	}
	return root, nil
}

// freelist checks the page that lists the free ones.
func (w *pageWalk) freelist() error {
	head := make([]byte, pageHeader)
	if _, err := w.r.ReadAt(head, int64(w.free)*w.size); err != nil {
		return fmt.Errorf("%w: page %d cannot be read: %v", errDamaged, w.free, err)
	}
	le := binary.LittleEndian
	if w.free >= w.end || le.Uint64(head) != w.free || le.Uint16(head[8:]) != pageFree || w.free+uint64(le.Uint32(head[12:])) >= w.end {
		return fmt.Errorf("%w: page %d does not list the free pages, as it should", errDamaged, w.free)
	}
	return nil
}

// page walks one page and all below it.
func (w *pageWalk) page(id uint64) error {
	fault := func(what string) error { return fmt.Errorf("%w: page %d %s", errDamaged, id, what) }
	if id < 2 || id >= w.end {
		return fault("is not in the file")
	}
	if w.seen[id/64]&(1<<(id%64)) != 0 {
		return fault("belongs to two others")
	}
	w.seen[id/64] |= 1 << (id % 64)
	head := make([]byte, pageHeader)
	if _, err := w.r.ReadAt(head, int64(id)*w.size); err != nil {
		return fault("cannot be read: " + err.Error())
	}
	le := binary.LittleEndian
	flags, count, overflow := le.Uint16(head[8:]), int(le.Uint16(head[10:])), uint64(le.Uint32(head[12:]))
	if le.Uint64(head) != id || flags != pageBranch && flags != pageLeaf || flags == pageBranch && count == 0 {
		return fault("is not what it should be")
	}
	bytes := int64(overflow+1) * w.size
	if id+overflow >= w.end || pageHeader+int64(count)*pageEntry > bytes {
		return fault("is longer than it can be")
	}
	entries := make([]byte, count*pageEntry)
	if _, err := w.r.ReadAt(entries, int64(id)*w.size+pageHeader); err != nil {
		return fault("cannot be read: " + err.Error())
	}
	for i := range count {
		e := entries[i*pageEntry:]
		at := pageHeader + int64(i)*pageEntry
		if flags == pageBranch {
			if at+int64(le.Uint32(e))+int64(le.Uint32(e[4:])) > bytes {
				return fault("has a key outside of it")
			}
			if err := w.page(le.Uint64(e[8:])); err != nil {
				return err
			}
			continue
		}
		key := at + int64(le.Uint32(e[4:]))
		value := key + int64(le.Uint32(e[8:]))
		if value+int64(le.Uint32(e[12:])) > bytes {
			return fault("has a record outside of it")
		}
		if le.Uint32(e)&leafBucket == 0 {
			continue
		}
		if err := w.bucket(id, value, int64(le.Uint32(e[12:]))); err != nil {
			return err
		}
	}
	return nil
}

// bucket walks a bucket whose record lies in a page. A small one has its only
// page in the record itself.
func (w *pageWalk) bucket(id uint64, at, n int64) error {
	fault := fmt.Errorf("%w: page %d has a bucket that cannot be read", errDamaged, id)
	b := make([]byte, min(n, 16+pageHeader))
	if _, err := w.r.ReadAt(b, int64(id)*w.size+at); err != nil || n < 16 {
		return fault
	}
	le := binary.LittleEndian
	if root := le.Uint64(b); root != 0 {
		return w.page(root)
	}
	if n < 16+pageHeader || le.Uint16(b[24:]) != pageLeaf {
		return fault
	}
	count := int64(le.Uint16(b[26:]))
	n -= 16
	entries := make([]byte, count*pageEntry)
	if pageHeader+count*pageEntry > n {
		return fault
	}
	if _, err := w.r.ReadAt(entries, int64(id)*w.size+at+16+pageHeader); err != nil {
		return fault
	}
	for i := range count {
		e := entries[i*pageEntry:]
		if pageHeader+i*pageEntry+int64(le.Uint32(e[4:]))+int64(le.Uint32(e[8:]))+int64(le.Uint32(e[12:])) > n {
			return fault
		}
	}
	return nil
}
