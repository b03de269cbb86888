package server

import (
	"crypto/sha256"
	"time"
)

// How often a password may be tried and be wrong. There is no limit on an
// account alone: with one, anybody could keep its owner out.
const (
	addressBurst = 30
	addressEvery = 10 * time.Second
	accountBurst = 10
	accountEvery = time.Minute
	keptLimits   = 4096 // keys of each, under 1 MiB together
)

// door limits sign-ins with a password.
type door struct {
	addresses *limiter // by address
	accounts  *limiter // by account and address
}

func newDoor() *door {
	return &door{
		addresses: newLimiter(addressBurst, addressEvery, keptLimits),
		accounts:  newLimiter(accountBurst, accountEvery, keptLimits),
	}
}

// try is one counted attempt.
type try struct{ address, account limitKey }

// enter counts an attempt before its work is done, or returns how long to
// wait until the next.
func (d *door) enter(account, address string, now time.Time) (t try, wait time.Duration) {
	net := Network(address)
	t = try{address: sha256.Sum256([]byte(net)), account: sha256.Sum256([]byte(net + "\x00" + account))}
	if wait := d.addresses.take(t.address, now); wait > 0 {
		return t, wait
	}
	if wait := d.accounts.take(t.account, now); wait > 0 {
		d.addresses.giveBack(t.address, now)
		return t, wait
	}
	return t, 0
}

// forget takes an attempt back that was no guess.
func (d *door) forget(t try, now time.Time) {
	d.addresses.giveBack(t.address, now)
	d.accounts.giveBack(t.account, now)
}
