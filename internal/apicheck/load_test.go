// Package apicheck holds the public packages to what users rely on: the listing
// of the API, options that compile only where they apply, and documentation.
package apicheck

import (
	"go/ast"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = "../.."
	module = "github.com/quorate/quorate"
)

// public are the packages that users import, by their folders.
var public = []string{".", "mutex", "rwmutex", "semaphore", "once", "leader", "members", "inspect", "quoratetest"}
