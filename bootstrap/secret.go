package bootstrap

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"caskeleton.dev/bootstrap/config"
	"caskeleton.dev/idempotency"
)

const devSecretFile = "idempotency.key" //nolint:gosec // a file name

// Keyring takes the HMAC secret from the configuration, or, in the dev profile, from a file that is made once: a new secret at each
// start would not recognise the repeats of before.
func Keyring(c *config.Config) (idempotency.Keyring, error) { return keyring(c, devSecret) }

// FindKeyring is [Keyring] for whoever only looks: where the dev profile has not made its secret yet, it makes none and returns [fs.ErrNotExist].
func FindKeyring(c *config.Config) (idempotency.Keyring, error) { return keyring(c, findDevSecret) }

func keyring(c *config.Config, dev func(dir string) ([]byte, error)) (idempotency.Keyring, error) {
	switch version := c.Idempotency.Current(); {
	case version != "":
		keys, err := idempotency.NewKeyring(version, []byte(c.Idempotency.Keys[version].Reveal()))
		for other, secret := range c.Idempotency.Keys {
			if other != version && err == nil {
				keys, err = keys.Accept(other, []byte(secret.Reveal()))
			}
		}
		return keys, err
	case c.Profile != config.Dev:
		return idempotency.Keyring{}, errors.New("APP_IDEMPOTENCY_KEY_<version> is not set; set APP_IDEMPOTENCY_KEY_V1 to the output of: openssl rand -base64 32")
	}
	secret, err := dev(c.DataDir)
	if err != nil {
		return idempotency.Keyring{}, fmt.Errorf("the dev profile keeps its idempotency secret in APP_DATA_DIR: %w", err)
	}
	return idempotency.NewKeyring("dev", secret)
}

func findDevSecret(dir string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, devSecretFile)) }

// devSecret reads the secret, or makes it. A link publishes it whole, and only where nobody else was first.
func devSecret(dir string) ([]byte, error) {
	path := filepath.Join(dir, devSecretFile)
	if secret, err := findDevSecret(dir); !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	// PostgreSQL runs as another user under root, and passes through this directory to its own; the secret itself is 0600.
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // see above
		return nil, err
	}
	f, err := os.CreateTemp(dir, devSecretFile+".*") // 0600
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(rand.Text() + rand.Text()) // 260 bits
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return findDevSecret(dir)
}
