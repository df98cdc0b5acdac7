/* What stands in the place of the host's function that gives a new array its tags.
 * It answers the common case: something records, no region was ever opened, no mapper
 * is at work, and the path is known to a PathTable.  Everything else, and every doubt,
 * is left to a Python function, *slow*, which answers all cases.
 *
 * The state is read where Python code keeps it: a context variable with the scope of
 * this thread or task, or None; in the globals of the module of scopes, the scope of
 * all others; a scope's attribute `quick`, the pair of a look-up and its limit; a
 * context variable with the node that a mapper is replacing, or None; in the globals
 * of the module of regions, whether there ever was one.
 */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *dict;
    PyObject *slow;
    PyObject *scope;
    PyObject *scope_globals;
    PyObject *origin;
    PyObject *region_globals;
} Seam;

typedef struct {
    PyObject *everywhere;
    PyObject *ever_opened;
    PyObject *quick;
    PyObject *tag_set;
} Names;

/* Like PyDict_GetItemRef, which is there from Python 3.13 on. */
static int
dict_get(PyObject *dict, PyObject *key, PyObject **value)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyDict_GetItemRef(dict, key, value);
#else
    *value = PyDict_GetItemWithError(dict, key);
    Py_XINCREF(*value);
    return *value == NULL && PyErr_Occurred() ? -1 : 0;
#endif
}

/* The site of the array that is being made, Py_None where *slow* has to be asked, NULL
 * with an error. */
static PyObject *
seam_site(Seam *self, const Names *names)
{
    PyObject *scope, *origin, *quick, *opened;

    if (PyContextVar_Get(self->origin, Py_None, &origin) < 0) {
        return NULL;
    }
    Py_DECREF(origin);
    if (dict_get(self->region_globals, names->ever_opened, &opened) < 0) {
        return NULL;
    }
    Py_XDECREF(opened);
    if (origin != Py_None || opened != Py_False) {
        return Py_NewRef(Py_None);
    }
    if (PyContextVar_Get(self->scope, Py_None, &scope) < 0) {
        return NULL;
    }
    if (scope == Py_None) {
        Py_DECREF(scope);
        if (dict_get(self->scope_globals, names->everywhere, &scope) < 0) {
            return NULL;
        }
        if (scope == NULL) {
            return Py_NewRef(Py_None);
        }
    }
    quick = PyObject_GetAttr(scope, names->quick);
    Py_DECREF(scope);
    if (quick == NULL) {
        return NULL;
    }
    PyObject *site = NULL;
    PyObject *lookup = PyTuple_Check(quick) && PyTuple_GET_SIZE(quick) == 2
        ? PyTuple_GET_ITEM(quick, 0) : NULL;
    if (lookup != NULL && PyCFunction_Check(lookup)
        && PyCFunction_GET_FUNCTION(lookup)
            == (PyCFunction)(void (*)(void))table_lookup) {
        PyObject *skip = PyLong_FromLong(0);
        PyObject *args[] = {skip, PyTuple_GET_ITEM(quick, 1)};
        site = table_lookup((PathTable *)PyCFunction_GET_SELF(lookup), args, 2);
        Py_DECREF(skip);
    }
    else {
        site = Py_NewRef(Py_None);
    }
    Py_DECREF(quick);
    return site;
}

static PyObject *
seam_call(Seam *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    const Names *names = PyType_GetModuleState(Py_TYPE(self));
    PyObject *site = seam_site(self, names);
    if (site != NULL && site != Py_None) {
        PyObject *tags = PyObject_GetAttr(site, names->tag_set);
        Py_DECREF(site);
        if (tags != NULL && tags != Py_None) {
            return tags;
        }
        site = tags;
    }
    Py_XDECREF(site);
    PyErr_Clear();
    return PyObject_Vectorcall(self->slow, args, nargsf, kwnames);
}

static PyObject *
seam_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *slow, *scope, *scope_globals, *origin, *region_globals;
    static char *keywords[] = {
        "slow", "scope", "scope_globals", "origin", "region_globals", NULL};
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "OO!O!O!O!:Seam", keywords, &slow,
            &PyContextVar_Type, &scope, &PyDict_Type, &scope_globals,
            &PyContextVar_Type, &origin, &PyDict_Type, &region_globals)) {
        return NULL;
    }
    Seam *self = (Seam *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = (vectorcallfunc)seam_call;
    self->slow = Py_NewRef(slow);
    self->scope = Py_NewRef(scope);
    self->scope_globals = Py_NewRef(scope_globals);
    self->origin = Py_NewRef(origin);
    self->region_globals = Py_NewRef(region_globals);
    return (PyObject *)self;
}

static int
seam_traverse(Seam *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->dict);
    Py_VISIT(self->slow);
    Py_VISIT(self->scope);
    Py_VISIT(self->scope_globals);
    Py_VISIT(self->origin);
    Py_VISIT(self->region_globals);
    return 0;
}

static int
seam_clear(Seam *self)
{
    Py_CLEAR(self->dict);
    Py_CLEAR(self->slow);
    Py_CLEAR(self->scope);
    Py_CLEAR(self->scope_globals);
    Py_CLEAR(self->origin);
    Py_CLEAR(self->region_globals);
    return 0;
}

static void
seam_dealloc(Seam *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    seam_clear(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyMemberDef seam_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(Seam, dict), READONLY, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Seam, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef seam_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(seam_doc,
"Seam(slow, scope, scope_globals, origin, region_globals)\n--\n\n"
"Answers for *slow* in the common case, see pytato_provenance.dispatch.");

static PyType_Slot seam_slots[] = {
    {Py_tp_doc, (void *)seam_doc},
    {Py_tp_new, seam_new},
    {Py_tp_dealloc, seam_dealloc},
    {Py_tp_traverse, seam_traverse},
    {Py_tp_clear, seam_clear},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, seam_members},
    {Py_tp_getset, seam_getset},
    {0, NULL},
};

static PyType_Spec seam_spec = {
    .name = "pytato_provenance.capture._walk.Seam",
    .basicsize = sizeof(Seam),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
        | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = seam_slots,
};
