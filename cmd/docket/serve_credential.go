package main

import "context"

// credential returns what a configured clone URL is fetched with: the token of
// the first project there that has one to give. A URL that is not configured
// any more gets none.
func (d *appliance) credential(ctx context.Context, cloneURL, refused string) (username, secret string, err error) {
	pins, err := d.store.Pins()
	if err != nil {
		return "", "", err
	}
	cfg := d.current.Load()
	for i := range cfg.Projects {
		p := cfg.Projects[i]
		if p.CloneURL != cloneURL {
			continue
		}
		if pin := pins[p.Name]; pin.ID != 0 { // as it is called now
			p.RepositoryID = pin.ID
			if pin.FullName != "" {
				p.Repository = pin.FullName
			}
		}
		if username, secret, err = d.forge.Credential(ctx, p, cloneURL, refused); err != nil || secret != "" {
			return username, secret, err
		}
	}
	return "", "", nil
}
