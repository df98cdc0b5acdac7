/* A table from call paths to Python objects, looked up by walking the stack.
 *
 * A call path is the sequence (code object, f_lasti) of the frames on the
 * current stack, innermost first.  The walk, the hash and the comparison happen
 * here in one go and allocate nothing for stacks of up to LOCAL_DEPTH frames.
 *
 * `paths.py` beside this file is the same thing in Python; `tests/test_paths.py`
 * holds both to one description.
 *
 * Ownership: an entry owns its value and the code objects of its path, so that
 * an address in a path cannot come to mean another code object.
 *
 * Re-entrancy: walking may run arbitrary Python code (materialising a frame can
 * start a garbage collection before Python 3.12), as does dropping a reference.
 * Neither happens while the table is in an inconsistent state.
 */

#ifndef Py_BEGIN_CRITICAL_SECTION
#  define Py_BEGIN_CRITICAL_SECTION(op) {
#  define Py_END_CRITICAL_SECTION() }
#endif

#define LOCAL_DEPTH 256
#define FIRST_SLOTS 64  /* a power of two */

typedef struct {
    PyObject *value;
    Py_ssize_t depth;
    uint64_t hash;
    PyObject *codes[1];  /* depth of them, then depth times an int */
} Entry;

#define ENTRY_SIZE(depth) \
    (offsetof(Entry, codes) + (depth) * (sizeof(PyObject *) + sizeof(int)))
#define ENTRY_LASTIS(entry) ((int *)((entry)->codes + (entry)->depth))

typedef struct {
    PyObject_HEAD
    Entry **entries;
    Py_ssize_t entry_slots;  /* a power of two, or 0 */
    Py_ssize_t entry_count;
    PyObject **marks;
    Py_ssize_t mark_slots;   /* a power of two, or 0 */
    Py_ssize_t mark_count;
} PathTable;

/* {{{ marked code objects */

static Py_ssize_t
mark_slot(PyObject **marks, Py_ssize_t slots, PyObject *code)
{
    uint64_t hash = ((uint64_t)(uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u;
    Py_ssize_t slot = (Py_ssize_t)((hash >> 32) & (uint64_t)(slots - 1));
    while (marks[slot] != NULL && marks[slot] != code) {
        slot = (slot + 1) & (slots - 1);
    }
    return slot;
}

static int
is_marked(PathTable *self, PyObject *code)
{
    int marked;
    Py_BEGIN_CRITICAL_SECTION(self);
    marked = self->mark_slots != 0
        && self->marks[mark_slot(self->marks, self->mark_slots, code)] != NULL;
    Py_END_CRITICAL_SECTION();
    return marked;
}

/* Slots for one item more at a load of at most one half. */
static Py_ssize_t
enough_slots(Py_ssize_t slots, Py_ssize_t count)
{
    if (slots == 0) {
        return FIRST_SLOTS;
    }
    return slots < 2 * (count + 1) ? 2 * slots : slots;
}

static int
insert_mark(PathTable *self, PyObject *code)
{
    Py_ssize_t slots = enough_slots(self->mark_slots, self->mark_count);
    if (slots != self->mark_slots) {
        PyObject **marks = PyMem_Calloc(slots, sizeof(*marks));
        if (marks == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        for (Py_ssize_t i = 0; i < self->mark_slots; i++) {
            if (self->marks[i] != NULL) {
                marks[mark_slot(marks, slots, self->marks[i])] = self->marks[i];
            }
        }
        PyMem_Free(self->marks);
        self->marks = marks;
        self->mark_slots = slots;
    }
    Py_ssize_t slot = mark_slot(self->marks, self->mark_slots, code);
    if (self->marks[slot] == NULL) {
        Py_INCREF(code);
        self->marks[slot] = code;
        self->mark_count++;
    }
    return 0;
}

/* }}} */

/* {{{ paths */

typedef struct {
    Py_ssize_t depth;
    Py_ssize_t room;
    uint64_t hash;
    PyObject **codes;  /* borrowed: the frames on the stack own them */
    int *lastis;
    PyObject *local_codes[LOCAL_DEPTH];
    int local_lastis[LOCAL_DEPTH];
} Path;

static int
path_grow(Path *path)
{
    Py_ssize_t room = 2 * path->room;
    PyObject **codes = PyMem_New(PyObject *, room);
    int *lastis = PyMem_New(int, room);
    if (codes == NULL || lastis == NULL) {
        PyMem_Free(codes);
        PyMem_Free(lastis);
        PyErr_NoMemory();
        return -1;
    }
    memcpy(codes, path->codes, path->depth * sizeof(*codes));
    memcpy(lastis, path->lastis, path->depth * sizeof(*lastis));
    if (path->codes != path->local_codes) {
        PyMem_Free(path->codes);
        PyMem_Free(path->lastis);
    }
    path->codes = codes;
    path->lastis = lastis;
    path->room = room;
    return 0;
}

static void
path_release(Path *path)
{
    if (path->codes != path->local_codes) {
        PyMem_Free(path->codes);
        PyMem_Free(path->lastis);
    }
}

static inline int
frame_lasti(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    /* 3.10 counts in instructions; the attribute `f_lasti` in bytes. */
    return frame->f_lasti < 0 ? -1 : frame->f_lasti * (int)sizeof(uint16_t);
#endif
}

/* Walk the stack from the frame *skip* levels above the caller.  If *max_frames* is
 * positive, take that many frames, after passing over those at the beginning whose
 * code is marked in *marks* (which may be NULL).  A stack that is not deep enough
 * gives the empty path. */
static int
path_walk(Path *path, PathTable *marks, Py_ssize_t skip, Py_ssize_t max_frames)
{
    path->depth = 0;
    path->room = LOCAL_DEPTH;
    path->codes = path->local_codes;
    path->lastis = path->local_lastis;

    uint64_t hash = 0x9E3779B97F4A7C15u;
    Py_ssize_t depth = 0;
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame != NULL) {
        if (skip > 0) {
            skip--;
        }
        else {
            if (depth == path->room) {
                path->depth = depth;
                if (path_grow(path) < 0) {
                    Py_DECREF(frame);
                    path_release(path);
                    return -1;
                }
            }
            PyObject *code = (PyObject *)PyFrame_GetCode(frame);
            int lasti = frame_lasti(frame);
            if (depth > 0 || max_frames == 0 || marks == NULL
                || !is_marked(marks, code)) {
                path->codes[depth] = code;
                path->lastis[depth] = lasti;
                depth++;
                hash ^= ((uint64_t)(uintptr_t)code >> 4)
                    + (uint64_t)(uint32_t)lasti * 0xD6E8FEB86659FD93u;
                hash *= 0xFF51AFD7ED558CCDu;
            }
            /* The running frame holds its code for as long as we need it. */
            Py_DECREF(code);
            if (max_frames > 0 && depth == max_frames) {
                Py_DECREF(frame);
                break;
            }
        }
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    path->depth = depth;
    path->hash = hash ^ (hash >> 32);
    return 0;
}

/* }}} */

/* {{{ entries */

static Py_ssize_t
entry_slot(Entry **entries, Py_ssize_t slots, const Path *path)
{
    Py_ssize_t slot = (Py_ssize_t)(path->hash & (uint64_t)(slots - 1));
    for (;;) {
        Entry *entry = entries[slot];
        if (entry == NULL
            || (entry->hash == path->hash && entry->depth == path->depth
                && memcmp(entry->codes, path->codes,
                          path->depth * sizeof(PyObject *)) == 0
                && memcmp(ENTRY_LASTIS(entry), path->lastis,
                          path->depth * sizeof(int)) == 0)) {
            return slot;
        }
        slot = (slot + 1) & (slots - 1);
    }
}

static void
put_entry(Entry **entries, Py_ssize_t slots, Entry *entry)
{
    Py_ssize_t slot = (Py_ssize_t)(entry->hash & (uint64_t)(slots - 1));
    while (entries[slot] != NULL) {
        slot = (slot + 1) & (slots - 1);
    }
    entries[slot] = entry;
}

static PyObject *
find_value(PathTable *self, const Path *path)
{
    if (self->entry_count == 0) {
        return NULL;
    }
    Entry *entry = self->entries[
        entry_slot(self->entries, self->entry_slots, path)];
    return entry == NULL ? NULL : entry->value;
}

/* The value that the table keeps for *path* (borrowed), or NULL with an error. */
static PyObject *
insert_entry(PathTable *self, const Path *path, PyObject *value)
{
    PyObject *known = find_value(self, path);
    if (known != NULL) {
        return known;
    }
    Py_ssize_t slots = enough_slots(self->entry_slots, self->entry_count);
    if (slots != self->entry_slots) {
        Entry **entries = PyMem_Calloc(slots, sizeof(*entries));
        if (entries == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        for (Py_ssize_t i = 0; i < self->entry_slots; i++) {
            if (self->entries[i] != NULL) {
                put_entry(entries, slots, self->entries[i]);
            }
        }
        PyMem_Free(self->entries);
        self->entries = entries;
        self->entry_slots = slots;
    }
    Entry *entry = PyMem_Malloc(ENTRY_SIZE(path->depth));
    if (entry == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_INCREF(value);
    entry->value = value;
    entry->depth = path->depth;
    entry->hash = path->hash;
    for (Py_ssize_t i = 0; i < path->depth; i++) {
        Py_INCREF(path->codes[i]);
        entry->codes[i] = path->codes[i];
    }
    memcpy(ENTRY_LASTIS(entry), path->lastis, path->depth * sizeof(int));
    put_entry(self->entries, self->entry_slots, entry);
    self->entry_count++;
    return value;
}

static void
drop_all(PathTable *self)
{
    Entry **entries;
    PyObject **marks;
    Py_ssize_t entry_slots, mark_slots;

    /* The table is empty and whole before the first reference is dropped. */
    Py_BEGIN_CRITICAL_SECTION(self);
    entries = self->entries;
    entry_slots = self->entry_slots;
    marks = self->marks;
    mark_slots = self->mark_slots;
    self->entries = NULL;
    self->entry_slots = self->entry_count = 0;
    self->marks = NULL;
    self->mark_slots = self->mark_count = 0;
    Py_END_CRITICAL_SECTION();

    for (Py_ssize_t i = 0; i < entry_slots; i++) {
        Entry *entry = entries[i];
        if (entry != NULL) {
            Py_DECREF(entry->value);
            for (Py_ssize_t j = 0; j < entry->depth; j++) {
                Py_DECREF(entry->codes[j]);
            }
            PyMem_Free(entry);
        }
    }
    for (Py_ssize_t i = 0; i < mark_slots; i++) {
        Py_XDECREF(marks[i]);
    }
    PyMem_Free(entries);
    PyMem_Free(marks);
}

/* }}} */

/* {{{ methods */

static int
parse_walk(Path *path, PathTable *marks, const char *name, PyObject *const *args,
           Py_ssize_t nargs, Py_ssize_t least, Py_ssize_t most)
{
    if (nargs < least || nargs > most) {
        PyErr_Format(PyExc_TypeError, "%s takes %zd to %zd arguments, not %zd",
                     name, least, most, nargs);
        return -1;
    }
    Py_ssize_t skip = PyLong_AsSsize_t(args[0]);
    if (skip == -1 && PyErr_Occurred()) {
        return -1;
    }
    Py_ssize_t max_frames = 0;
    if (nargs > 1) {
        max_frames = PyLong_AsSsize_t(args[1]);
        if (max_frames == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    if (skip < 0 || max_frames < 0) {
        PyErr_Format(PyExc_ValueError, "%s: negative number of frames", name);
        return -1;
    }
    return path_walk(path, marks, skip, max_frames);
}

PyDoc_STRVAR(lookup_doc,
"lookup(skip, max_frames=0, /)\n--\n\n"
"Return the value kept for the current call path, or None.");

static PyObject *
table_lookup(PathTable *self, PyObject *const *args, Py_ssize_t nargs)
{
    Path path;
    if (parse_walk(&path, self, "lookup", args, nargs, 1, 2) < 0) {
        return NULL;
    }
    PyObject *value;
    Py_BEGIN_CRITICAL_SECTION(self);
    value = find_value(self, &path);
    if (value == NULL) {
        value = Py_None;
    }
    Py_INCREF(value);
    Py_END_CRITICAL_SECTION();
    path_release(&path);
    return value;
}

PyDoc_STRVAR(add_doc,
"add(skip, max_frames, value, /)\n--\n\n"
"Keep *value* for the current call path, cut off after *max_frames* if that is\n"
"not 0, unless one is kept already.\n\n"
"Return the value that is kept: all threads get the same one.");

static PyObject *
table_add(PathTable *self, PyObject *const *args, Py_ssize_t nargs)
{
    Path path;
    if (nargs != 3) {
        PyErr_Format(PyExc_TypeError, "add takes 3 arguments, not %zd", nargs);
        return NULL;
    }
    if (parse_walk(&path, NULL, "add", args, 2, 2, 2) < 0) {
        return NULL;
    }
    PyObject *value;
    Py_BEGIN_CRITICAL_SECTION(self);
    value = insert_entry(self, &path, args[2]);
    Py_XINCREF(value);
    Py_END_CRITICAL_SECTION();
    path_release(&path);
    return value;
}

PyDoc_STRVAR(mark_doc,
"mark(code, /)\n--\n\n"
"Have lookup with *max_frames* pass over *code* at the beginning of a path.");

static PyObject *
table_mark(PathTable *self, PyObject *code)
{
    if (!PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "mark: not a code object");
        return NULL;
    }
    int status;
    Py_BEGIN_CRITICAL_SECTION(self);
    status = insert_mark(self, code);
    Py_END_CRITICAL_SECTION();
    if (status < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(clear_doc, "clear()\n--\n\nDrop all entries and marks.");

static PyObject *
table_clear(PathTable *self, PyObject *Py_UNUSED(ignored))
{
    drop_all(self);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(sizeof_doc,
"__sizeof__()\n--\n\n"
"Return the table's size in bytes, without the values and code objects.");

static PyObject *
table_sizeof(PathTable *self, PyObject *Py_UNUSED(ignored))
{
    size_t size = sizeof(PathTable);
    Py_BEGIN_CRITICAL_SECTION(self);
    size += self->entry_slots * sizeof(Entry *);
    size += self->mark_slots * sizeof(PyObject *);
    for (Py_ssize_t i = 0; i < self->entry_slots; i++) {
        if (self->entries[i] != NULL) {
            size += ENTRY_SIZE(self->entries[i]->depth);
        }
    }
    Py_END_CRITICAL_SECTION();
    return PyLong_FromSize_t(size);
}

static Py_ssize_t
table_length(PathTable *self)
{
    return self->entry_count;
}

static int
table_traverse(PathTable *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    for (Py_ssize_t i = 0; i < self->entry_slots; i++) {
        if (self->entries[i] != NULL) {
            Py_VISIT(self->entries[i]->value);
            for (Py_ssize_t j = 0; j < self->entries[i]->depth; j++) {
                Py_VISIT(self->entries[i]->codes[j]);
            }
        }
    }
    for (Py_ssize_t i = 0; i < self->mark_slots; i++) {
        Py_VISIT(self->marks[i]);
    }
    return 0;
}

static int
table_tp_clear(PathTable *self)
{
    drop_all(self);
    return 0;
}

static void
table_dealloc(PathTable *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    table_tp_clear(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

/* }}} */

/* {{{ the type */

static PyMethodDef table_methods[] = {
    {"lookup", (PyCFunction)(void (*)(void))table_lookup, METH_FASTCALL,
     lookup_doc},
    {"add", (PyCFunction)(void (*)(void))table_add, METH_FASTCALL, add_doc},
    {"mark", (PyCFunction)table_mark, METH_O, mark_doc},
    {"clear", (PyCFunction)table_clear, METH_NOARGS, clear_doc},
    {"__sizeof__", (PyCFunction)table_sizeof, METH_NOARGS, sizeof_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(table_doc,
"PathTable()\n--\n\n"
"A table from call paths to values, see pytato_provenance.capture.paths.");

static PyType_Slot table_slots[] = {
    {Py_tp_doc, (void *)table_doc},
    {Py_tp_methods, table_methods},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, table_dealloc},
    {Py_tp_traverse, table_traverse},
    {Py_tp_clear, table_tp_clear},
    {Py_sq_length, table_length},
    {0, NULL},
};

static PyType_Spec table_spec = {
    .name = "pytato_provenance.capture._walk.PathTable",
    .basicsize = sizeof(PathTable),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = table_slots,
};

/* }}} */
