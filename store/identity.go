package store

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"docket/store/ci"
)

// identityKey is a receipt's identity as an index key. A GUID of version 1 is
// kept with its time fields first: those of one day lie together, and new
// ones come at the end of the index. Nothing relies on it: any other delivery
// id is taken as it is.
func identityKey(id ci.ReceiptID) []byte {
	k := make([]byte, 0, len(id.Integration)+len(id.Installation)+len(id.Delivery)+3)
	k = append(k, id.Integration...)
	k = append(k, 0)
	k = append(k, id.Installation...)
	k = append(k, 0)
	if u, ok := timeOrdered(id.Delivery); ok {
		k = append(k, 1)
		return append(k, u[:]...)
	}
	k = append(k, 0)
	return append(k, id.Delivery...)
}

// timeOrdered reads a version-1 UUID in its canonical lower-case form and
// returns its bytes with time_hi, time_mid, time_low first.
func timeOrdered(s string) (u [16]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' || s[14] != '1' {
		return u, false
	}
	var text [32]byte
	copy(text[:], s[14:18])
	copy(text[4:], s[9:13])
	copy(text[8:], s[0:8])
	copy(text[16:], s[19:23])
	copy(text[20:], s[24:])
	if strings.ToLower(s) != s {
		return u, false // other letters are another id
	}
	if _, err := hex.Decode(u[:], text[:]); err != nil {
		return u, false
	}
	return u, true
}

// digestKey finds known bytes again under another delivery id. The provider's
// own time is put first, so that new deliveries come at the end of the index;
// equal bytes have it equal.
func digestKey(at int64, sha256hex string) []byte {
	k := binary.BigEndian.AppendUint64(nil, uint64(max(at, 0)))
	n := min(len(sha256hex), 32)
	raw, err := hex.AppendDecode(k, []byte(sha256hex[:n&^1]))
	if err != nil {
		return append(k, sha256hex...)
	}
	return raw
}
