package strategy_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/tests/codes"
)

func TestEveryCodeIsExplained(t *testing.T) { codes.Check(t, strategy.Codes(), strategy.Explain) }
