package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

func mustLog(t must, s *store.Store, run string, attempt int) *store.LogWriter {
	t.Helper()
	w, err := s.Logs().Create(run, attempt)
	if err != nil {
		t.Fatalf("create log: %v", err)
	}
	return w
}

func mustOpenLog(t must, s *store.Store, run string, attempt int) *store.LogReader {
	t.Helper()
	r, err := s.Logs().Open(run, attempt)
	if err != nil {
		t.Fatalf("open log: %v", err)
	}
	return r
}

func mustAppend(t must, w *store.LogWriter, step int, text string) {
	t.Helper()
	if err := w.Append(step, time.UnixMilli(1_700_000_000_123), []byte(text), false); err != nil {
		t.Fatalf("append: %v", err)
	}
}

// readOn reads what there is now.
func readOn(t must, r *store.LogReader) (list []store.Chunk, data []byte) {
	t.Helper()
	for {
		c, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list, data
		}
		if err != nil {
			t.Fatalf("next: %v", err)
		}
		list, data = append(list, c), append(data, c.Data...)
	}
}

func TestLog_GivesBackWhatWasAppended(t *testing.T) {
	s := storetest.MustOpen(t)
	w := mustLog(t, s, "api-1", 1)
	at := time.UnixMilli(1_700_000_000_123)
	mustNil(t, w.Append(-1, at, []byte("cloning\n"), true))
	mustNil(t, w.Append(0, at, []byte("\x82\x1f\x8b\x00"), false))
	mustNil(t, w.Append(0, at, nil, false))
	mustNil(t, w.Append(1, at.Add(time.Second), []byte("é"), false))
	mustNil(t, w.Close())
	mustNil(t, w.Close())
	if err := w.Append(1, at, []byte("late"), false); !errors.Is(err, fs.ErrClosed) {
		t.Fatalf("append after close: %v", err)
	}
	r := mustOpenLog(t, s, "api-1", 0)
	defer r.Close()
	list, _ := readOn(t, r)
	want := []store.Chunk{
		{Step: -1, Offset: 0, At: at, Notice: true, Data: []byte("cloning\n")},
		{Step: 0, Offset: 8, At: at, Data: []byte("\x82\x1f\x8b\x00")},
		{Step: 1, Offset: 12, At: at.Add(time.Second), Data: []byte("é")},
	}
	if fmt.Sprint(list) != fmt.Sprint(want) {
		t.Fatalf("%v, want %v", list, want)
	}
	if done, err := r.Wait(t.Context()); !done || err != nil {
		t.Fatalf("a log that nobody writes to: %v, %v", done, err)
	}
}

func TestLog_LongOutputIsCutIntoChunks(t *testing.T) {
	s := storetest.MustOpen(t)
	long := bytes.Repeat([]byte("0123456789abcde\n"), (store.MaxChunk*2+32)/16)
	w := mustLog(t, s, "api-1", 1)
	mustNil(t, w.Append(0, time.Now(), long, false))
	mustNil(t, w.Close())
	r := mustOpenLog(t, s, "api-1", 1)
	defer r.Close()
	list, data := readOn(t, r)
	if len(list) != 3 || !bytes.Equal(data, long) || list[1].Offset != store.MaxChunk || len(list[2].Data) != 32 {
		t.Fatalf("%d chunks, %d bytes of %d", len(list), len(data), len(long))
	}
}

func TestLog_OfTheNewestAttempt(t *testing.T) {
	s := storetest.MustOpen(t)
	_, err := s.Logs().Open("api-1", 0)
	mustCode(t, err, ci.CodeNotFound)
	for _, attempt := range []int{9, 10, 2} {
		w := mustLog(t, s, "api-1", attempt)
		mustAppend(t, w, 0, fmt.Sprint(attempt))
		mustNil(t, w.Close())
	}
	for attempt, want := range map[int]string{0: "10", 2: "2", 9: "9"} {
		r := mustOpenLog(t, s, "api-1", attempt)
		if _, got := readOn(t, r); string(got) != want {
			t.Errorf("attempt %d: %q", attempt, got)
		}
		r.Close()
	}
	_, err = s.Logs().Open("api-1", 3)
	mustCode(t, err, ci.CodeNotFound)
	mustNil(t, s.Logs().Remove("api-1"))
	_, err = s.Logs().Open("api-1", 0)
	mustCode(t, err, ci.CodeNotFound)
	for _, id := range []string{"../x-1", "..-1", "a/b-1", "nonsense", ""} {
		_, err := s.Logs().Open(id, 0)
		mustCode(t, err, ci.CodeNotFound)
		if _, err := s.Logs().Create(id, 1); err == nil {
			t.Errorf("a log of %q was made", id)
		}
	}
}

// Ensure that what a crash cut short is not there, wherever it was cut, and
// what came before it is.
func TestLog_ATornFrameIsNotThere(t *testing.T) {
	dir := t.TempDir()
	s := storetest.MustOpenAt(t, filepath.Join(dir, "docket.db"), store.Options{})
	w := mustLog(t, s, "api-1", 1)
	mustAppend(t, w, 0, "whole")
	mustAppend(t, w, 0, "torn")
	mustNil(t, w.Close())
	path := filepath.Join(dir, "logs", "api", "1", "1.log")
	good := mustRead(t, path)
	first := 16 + len("whole")
	for cut := first; cut < len(good); cut++ {
		mustNil(t, os.WriteFile(path, good[:cut], 0o600))
		r := mustOpenLog(t, s, "api-1", 1)
		if list, data := readOn(t, r); len(list) != 1 || string(data) != "whole" {
			t.Fatalf("cut at %d: %v", cut, list)
		}
		if list, _ := readOn(t, r); len(list) != 0 {
			t.Fatalf("cut at %d: read twice", cut)
		}
		// A live reader may see as little of a frame; it gets the whole one later.
		mustNil(t, os.WriteFile(path, good, 0o600))
		if list, data := readOn(t, r); len(list) != 1 || string(data) != "torn" || list[0].Offset != 5 {
			t.Fatalf("cut at %d, and then whole: %v", cut, list)
		}
		r.Close()
	}
}

// Ensure that a live log is followed without a gap or a repetition, by many.
func TestLog_ManyFollow(t *testing.T) {
	s := storetest.MustOpen(t)
	w := mustLog(t, s, "api-1", 1)
	var want bytes.Buffer
	var wg sync.WaitGroup
	got := make([][]byte, 8)
	for i := range got {
		r := mustOpenLog(t, s, "api-1", 0)
		wg.Go(func() {
			defer r.Close()
			next := int64(0)
			for done := false; ; {
				list, data := readOn(t, r)
				for _, c := range list {
					if c.Offset != next {
						t.Errorf("reader %d: offset %d, want %d", i, c.Offset, next)
					}
					next += int64(len(c.Data))
				}
				got[i] = append(got[i], data...)
				if done {
					return
				}
				var err error
				if done, err = r.Wait(context.Background()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 400 {
		line := fmt.Sprintf("line %d %s\n", i, bytes.Repeat([]byte("x"), i*7%500))
		want.WriteString(line)
		mustAppend(t, w, 0, line)
	}
	mustNil(t, w.Close())
	wg.Wait()
	for i := range got {
		if !bytes.Equal(got[i], want.Bytes()) {
			t.Fatalf("reader %d got %d bytes of %d", i, len(got[i]), want.Len())
		}
	}
}

func TestLog_WaitEnds(t *testing.T) {
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{})
	w := mustLog(t, s, "api-1", 1)
	r := mustOpenLog(t, s, "api-1", 1)
	defer r.Close()
	ctx, cancel := context.WithCancel(context.Background())
	waits := make(chan error, 1)
	go func() { _, err := r.Wait(ctx); waits <- err }()
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	mustAppend(t, w, 0, "x")
	if done, err := r.Wait(t.Context()); done || err != nil {
		t.Fatalf("%v, %v", done, err)
	}
	readOn(t, r)
	ended := make(chan bool, 1)
	go func() { done, _ := r.Wait(context.Background()); ended <- done }()
	mustNil(t, s.Close()) // the server ends: so does every log
	if !<-ended {
		t.Fatal("the log's end was not told")
	}
}

// Ensure that reading can go on from every offset, exactly.
func TestLog_ResumesAtEveryOffset(t *testing.T) {
	s := storetest.MustOpen(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		run := fmt.Sprintf("api-%d", n)
		w := mustLog(rt, s, run, 1)
		var all []byte
		for _, part := range rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 20), 0, 8).Draw(rt, "parts") {
			if err := w.Append(0, time.Now(), part, false); err != nil {
				rt.Fatalf("%v", err)
			}
			all = append(all, part...)
		}
		if rapid.Bool().Draw(rt, "ended") {
			w.Close()
		} else {
			defer w.Close()
		}
		r := mustOpenLog(rt, s, run, 1)
		defer r.Close()
		from := rapid.IntRange(0, len(all)).Draw(rt, "from")
		for _, at := range []int{from, len(all), 0} {
			if err := r.SeekTo(int64(at)); err != nil {
				rt.Fatalf("%v", err)
			}
			next := at
			list, data := readOn(rt, r)
			for _, c := range list {
				if c.Offset != int64(next) || len(c.Data) == 0 {
					rt.Fatalf("from %d: chunk at %d of %d bytes, want %d", at, c.Offset, len(c.Data), next)
				}
				next += len(c.Data)
			}
			if !bytes.Equal(data, all[at:]) {
				rt.Fatalf("from %d: %q, want %q", at, data, all[at:])
			}
		}
	})
}

// Ensure that an offset which is not there yet is waited for.
func TestLog_SeekAheadOfTheEnd(t *testing.T) {
	s := storetest.MustOpen(t)
	w := mustLog(t, s, "api-1", 1)
	defer w.Close()
	mustAppend(t, w, 0, "abc")
	r := mustOpenLog(t, s, "api-1", 1)
	defer r.Close()
	mustNil(t, r.SeekTo(5))
	if list, _ := readOn(t, r); len(list) != 0 {
		t.Fatalf("%v", list)
	}
	mustAppend(t, w, 0, "defg")
	if list, data := readOn(t, r); string(data) != "fg" || list[0].Offset != 5 {
		t.Fatalf("%v", list)
	}
}

// Ensure that a write which failed half way leaves no half behind.
func TestLog_AFullDiskCutsWholeFrames(t *testing.T) {
	dir := t.TempDir()
	s := storetest.MustOpenAt(t, filepath.Join(dir, "docket.db"), store.Options{})
	w := mustLog(t, s, "api-1", 1)
	mustAppend(t, w, 0, "before")
	room := replaceFile(t, filepath.Join(dir, "logs", "api", "1", "1.log"), mustOpenFile(t, "/dev/full", os.O_RDWR))
	if err := w.Append(0, time.Now(), []byte("lost"), false); err == nil {
		t.Fatal("a full disk took it")
	}
	room()
	mustAppend(t, w, 0, "after")
	mustNil(t, w.Close())
	r := mustOpenLog(t, s, "api-1", 1)
	defer r.Close()
	if _, data := readOn(t, r); string(data) != "beforeafter" {
		t.Fatalf("%q", data)
	}
}
