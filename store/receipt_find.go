package store

import (
	"bytes"

	"docket/store/ci"
)

// FindDelivery returns the receipts of a provider's delivery id in whatever
// integrations and installations it came through, at most limit. It costs as
// much as there are installations.
func (s *Store) FindDelivery(delivery string, limit int) (list []ci.Receipt, err error) {
	list = []ci.Receipt{}
	err = s.view(func(t *tx) error {
		return t.installations(nil, func(integration, installation string) (bool, error) {
			key, err := t.receiptSeq(ci.ReceiptID{Integration: integration, Installation: installation, Delivery: delivery})
			if err != nil {
				return true, nil // not from here
			}
			rec, err := decodeReceipt(t.get(bucketReceipts, key))
			if err != nil {
				return false, err
			}
			list = append(list, rec)
			return len(list) < limit, nil
		})
	})
	return list, err
}

// installations calls fn with each pair of integration and installation that
// receipts have come from, until fn says that it was enough. prefix narrows
// the identities that are looked at.
func (t *tx) installations(prefix []byte, fn func(integration, installation string) (goOn bool, err error)) error {
	c := t.bucket(bucketIdentities).Cursor()
	k, _ := c.Seek(prefix)
	for k != nil && bytes.HasPrefix(k, prefix) {
		i := bytes.IndexByte(k, 0)
		if i < 0 {
			return nil
		}
		n := bytes.IndexByte(k[i+1:], 0)
		if n < 0 {
			return nil
		}
		end := i + 1 + n + 1
		goOn, err := fn(string(k[:i]), string(k[i+1:end-1]))
		if err != nil || !goOn {
			return err
		}
		k, _ = c.Seek(after(k[:end]))
	}
	return nil
}

// lookedReceipts bounds how many receipts LatestReceipt passes over.
const lookedReceipts = 2000

// LatestReceipt returns the newest receipt of an integration; ok is false if
// there is none. Where thousands of others have come since, it may be one that
// is not quite the newest.
func (s *Store) LatestReceipt(integration string) (rec ci.Receipt, ok bool, err error) {
	err = s.view(func(t *tx) error {
		prefix := append([]byte(integration), 0)
		if k, _ := t.bucket(bucketIdentities).Cursor().Seek(prefix); !bytes.HasPrefix(k, prefix) {
			return nil
		}
		named := append([]byte(`"id":`), bytes.TrimSuffix(mustJSON(integration+"/"), []byte(`"`))...)
		c := t.bucket(bucketReceipts).Cursor()
		k, v := c.Last()
		for looked := 0; k != nil && looked < lookedReceipts; looked++ {
			if bytes.Contains(v, named) {
				if rec, err = decodeReceipt(v); err != nil {
					return err
				}
				if ok = rec.Integration == integration; ok {
					return nil
				}
			}
			k, v = c.Prev()
		}
		return t.installations(prefix, func(integration, installation string) (bool, error) {
			p := append(append([]byte(nil), prefix...), installation...)
			_, key := last(t.bucket(bucketIdentities).Cursor(), append(p, 0))
			r, err := decodeReceipt(t.get(bucketReceipts, key))
			if err != nil {
				return false, err
			}
			if !ok || rec.ReceivedAt.Before(r.ReceivedAt.Time) {
				rec, ok = r, true
			}
			return true, nil
		})
	})
	return rec, ok, err
}
