package sharding_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/tests/codes"
)

func TestEveryCodeIsExplained(t *testing.T) {
	list := []problem.Code{sharding.UnknownAxis, sharding.DuplicateAxis, sharding.SpecRank, sharding.Indivisible}
	codes.Check(t, list, sharding.Explain)
}
