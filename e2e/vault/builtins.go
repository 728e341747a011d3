package main

import (
	"slices"

	"github.com/hashicorp/vault/sdk/helper/consts"
)

// builtins tells Vault's plugin catalogue which engines are compiled in. The
// engines themselves come from the maps of CoreConfig.
type builtins struct{}

func (builtins) Keys(kind consts.PluginType) []string {
	switch kind {
	case consts.PluginTypeSecrets:
		return []string{"transit"}
	case consts.PluginTypeCredential:
		return []string{"approle"}
	default:
		return nil
	}
}

func (b builtins) Contains(name string, kind consts.PluginType) bool {
	return slices.Contains(b.Keys(kind), name)
}

func (b builtins) Get(name string, kind consts.PluginType) (func() (any, error), bool) {
	return func() (any, error) { return nil, nil }, b.Contains(name, kind)
}

func (b builtins) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, b.Contains(name, kind)
}

func (builtins) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }
