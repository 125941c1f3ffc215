package layout_test

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/tests/codes"
)

func TestEveryCodeIsExplained(t *testing.T) { codes.Check(t, layout.Codes(), layout.Explain) }
