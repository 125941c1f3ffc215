package jsontext

import "strconv"

// Writer appends JSON without spaces. It writes the commas; the caller is
// responsible for the rest of the grammar. The zero value is an empty text.
type Writer struct {
	Text  []byte
	after bool // a value was written: a comma comes before the next one
}

func (w *Writer) comma() {
	if w.after {
		w.Text = append(w.Text, ',')
	}
	w.after = false
}

// Open begins an object or a list with its bracket.
func (w *Writer) Open(bracket byte) {
	w.comma()
	w.Text = append(w.Text, bracket)
}

// Close ends an object or a list with its bracket.
func (w *Writer) Close(bracket byte) {
	w.Text = append(w.Text, bracket)
	w.after = true
}

// Key writes the key of a member. It returns w, to write the value with.
func (w *Writer) Key(key string) *Writer {
	w.comma()
	w.Text = append(AppendString(w.Text, key), ':')
	return w
}

// String writes a string.
func (w *Writer) String(s string) {
	w.comma()
	w.Text = AppendString(w.Text, s)
	w.after = true
}

// Int writes an integer.
func (w *Writer) Int(n int64) {
	w.comma()
	w.Text = strconv.AppendInt(w.Text, n, 10)
	w.after = true
}

// Fixed writes an integer of thousandths as a number with the fewest decimals.
func (w *Writer) Fixed(thousandths int64) {
	w.comma()
	w.Text = AppendFixed(w.Text, thousandths)
	w.after = true
}

// AppendFixed appends an integer of thousandths as a number with the fewest
// decimals, such as 1.25.
func AppendFixed(text []byte, thousandths int64) []byte {
	if thousandths < 0 {
		text, thousandths = append(text, '-'), -thousandths
	}
	text = strconv.AppendInt(text, thousandths/1000, 10)
	rest := thousandths % 1000
	if rest == 0 {
		return text
	}
	text = append(text, '.')
	for unit := int64(100); rest > 0; unit /= 10 {
		text = append(text, byte('0'+rest/unit))
		rest %= unit
	}
	return text
}

// Field writes a member that is an integer. A number that is negative, which means that it
// is not known, or above MaxInteger is null.
func (w *Writer) Field(key string, n int64) *Writer { return w.field(key, n, w.Int) }

// FixedField is Field for thousandths, as Fixed writes them.
func (w *Writer) FixedField(key string, n int64) *Writer { return w.field(key, n, w.Fixed) }

func (w *Writer) field(key string, n int64, write func(n int64)) *Writer {
	if w.Key(key); n < 0 || n > MaxInteger {
		w.Null()
	} else {
		write(n)
	}
	return w
}

// Bool writes true or false.
func (w *Writer) Bool(b bool) { w.Raw(strconv.FormatBool(b)) }

// Null writes null.
func (w *Writer) Null() { w.Raw("null") }

// Raw writes a value that is JSON already.
func (w *Writer) Raw(value string) {
	w.comma()
	w.Text = append(w.Text, value...)
	w.after = true
}

// Ints writes a list of integers.
func (w *Writer) Ints(list ...int) {
	w.Open('[')
	for _, n := range list {
		w.Int(int64(n))
	}
	w.Close(']')
}

// Strings writes a list of strings.
func (w *Writer) Strings(list ...string) {
	w.Open('[')
	for _, s := range list {
		w.String(s)
	}
	w.Close(']')
}

// Pairs writes a list of pairs.
func (w *Writer) Pairs(list [][2]int) {
	w.Open('[')
	for _, p := range list {
		w.Ints(p[:]...)
	}
	w.Close(']')
}
