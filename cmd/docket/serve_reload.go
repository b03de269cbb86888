package main

import (
	"errors"
	"os"
	"os/signal"
	"reflect"
	"sync"
	"syscall"
)

// reread reads the configuration again and puts it in force as a whole. A
// broken one is refused, and the old one stays.
func (d *appliance) reread() (err error) {
	d.rereading.Lock()
	defer d.rereading.Unlock()
	defer func() { d.refused.Store(err != nil) }()
	if d.reload == nil {
		return errors.New("this configuration cannot be read again")
	}
	cfg, err := d.reload()
	if err != nil {
		return err
	}
	old := d.current.Load()
	for _, fixed := range []struct {
		key     string
		changed bool
	}{
		{"data_dir", cfg.DataDir != old.DataDir},
		{"listen", !reflect.DeepEqual(cfg.Listen, old.Listen)},
		{"log.format", cfg.Log.Format != old.Log.Format},
		{"traces", cfg.Traces != nil && d.tracer == nil}, // to be without them again takes no restart
	} {
		if fixed.changed {
			d.log.Warn("this key is only read at the start: restart docket to change it", keyKey, fixed.key)
		}
	}
	cfg.DataDir, cfg.Listen, cfg.Log.Format = old.DataDir, old.Listen, old.Log.Format
	if d.tracer == nil {
		cfg.Traces = nil
	}
	if d.level != nil {
		d.level.Set(levelOf(cfg))
	}
	d.current.Store(cfg)
	return nil
}

// rereadAndSay is reread, told to the service manager and the log with what
// it was made for.
func (d *appliance) rereadAndSay(why ...any) {
	d.notify(notifyReloading())
	err := d.reread()
	d.notify(notifyReady)
	if err != nil {
		d.log.Error("configuration refused; the old one stays in force", append(why, keyError, err)...)
		return
	}
	d.log.Info("configuration read again", why...)
}

// rereadOnHUP rereads the configuration at each SIGHUP until stop is called.
func (d *appliance) rereadOnHUP() (stop func()) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-hup:
				d.rereadAndSay()
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(hup)
		close(done)
		wg.Wait()
	}
}
