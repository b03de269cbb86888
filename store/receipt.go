package store

import (
	"docket/store/ci"
)

func (t *tx) putReceipt(key []byte, rec *ci.Receipt) error {
	record, err := encodeReceipt(rec.ID, rec.Outcome, rec.Runs, receiptJSON(rec))
	if err != nil {
		return err
	}
	return t.put(bucketReceipts, key, record)
}

// receiptSeq finds a receipt by its identity, or CodeNotFound.
func (t *tx) receiptSeq(id ci.ReceiptID) ([]byte, error) {
	v := t.get(bucketIdentities, identityKey(id))
	if v == nil {
		return nil, ci.Errorf(ci.CodeNotFound, "no receipt %q; `docket receipts list` shows those there are", id.String())
	}
	return v, nil
}

// Receipt returns a receipt, or CodeNotFound.
func (s *Store) Receipt(id ci.ReceiptID) (rec ci.Receipt, err error) {
	err = s.view(func(t *tx) error {
		key, err := t.receiptSeq(id)
		if err != nil {
			return err
		}
		rec, err = decodeReceipt(t.get(bucketReceipts, key))
		return err
	})
	return rec, err
}

// ReceiptBody returns a delivery's kept headers and exact bytes, or CodeNotFound.
func (s *Store) ReceiptBody(id ci.ReceiptID) (header map[string]string, body []byte, err error) {
	err = s.view(func(t *tx) error {
		key, err := t.receiptSeq(id)
		if err != nil {
			return err
		}
		v := t.get(bucketBodies, key)
		if v == nil {
			return ci.Errorf(ci.CodeNotFound, "the body of receipt %q is not kept any more", id.String())
		}
		header, body, err = decodeBody(v)
		return err
	})
	return header, body, err
}

// Receipts lists receipts, newest first; outcome "" means all.
func (s *Store) Receipts(outcome ci.Outcome, p Page) (list []ci.Receipt, next string, err error) {
	list = []ci.Receipt{}
	limit, before, err := p.read()
	if err != nil {
		return nil, "", err
	}
	err = s.view(func(t *tx) error {
		c := t.bucket(bucketReceipts).Cursor()
		var from []byte
		if before > 0 {
			from = be64(before)
		}
		k, v := lastBefore(c, nil, from)
		for looked := 0; k != nil; k, v = c.Prev() {
			if looked++; len(list) == limit || looked > maxLooked {
				next = cursor(before)
				return nil
			}
			before = fromBE64(k)
			if outcome != "" && (len(v) == 0 || v[0] != outcome[0]) {
				continue
			}
			rec, err := decodeReceipt(v)
			if err != nil {
				return err
			}
			list = append(list, rec)
		}
		return nil
	})
	return list, next, err
}
