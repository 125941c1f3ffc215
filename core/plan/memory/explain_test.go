package memory_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/tests/codes"
)

func TestEveryCodeIsExplained(t *testing.T) { codes.Check(t, memory.Codes(), memory.Explain) }
