/* The optional compiled part of the capture, on CPython's public C API only. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#if PY_VERSION_HEX < 0x030B0000
#  include <frameobject.h>
#endif
#include <structmember.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "_path_table.h"
#include "_seam.h"

static int
walk_exec(PyObject *module)
{
    /* Before 3.12 no slot says so, and then only isolated ones heed it. */
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError,
            "pytato_provenance.capture._walk does not work in subinterpreters: "
            "record in the main interpreter");
        return -1;
    }
    Names *names = PyModule_GetState(module);
    names->everywhere = PyUnicode_InternFromString("_everywhere");
    names->ever_opened = PyUnicode_InternFromString("ever_opened");
    names->quick = PyUnicode_InternFromString("quick");
    names->tag_set = PyUnicode_InternFromString("tag_set");
    if (names->everywhere == NULL || names->ever_opened == NULL
        || names->quick == NULL || names->tag_set == NULL) {
        return -1;
    }
    PyType_Spec *specs[] = {&table_spec, &seam_spec};
    for (int i = 0; i < 2; i++) {
        PyObject *type = PyType_FromModuleAndSpec(module, specs[i], NULL);
        if (type == NULL) {
            return -1;
        }
        int status = PyModule_AddType(module, (PyTypeObject *)type);
        Py_DECREF(type);
        if (status < 0) {
            return -1;
        }
    }
    return 0;
}

static int
walk_clear(PyObject *module)
{
    Names *names = PyModule_GetState(module);
    Py_CLEAR(names->everywhere);
    Py_CLEAR(names->ever_opened);
    Py_CLEAR(names->quick);
    Py_CLEAR(names->tag_set);
    return 0;
}

static void
walk_free(void *module)
{
    walk_clear((PyObject *)module);
}

static PyModuleDef_Slot walk_slots[] = {
    {Py_mod_exec, walk_exec},
#ifdef Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_MOD_GIL_NOT_USED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef walk_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pytato_provenance.capture._walk",
    .m_doc = "The current call path, looked up in a table (compiled part).",
    .m_size = sizeof(Names),
    .m_slots = walk_slots,
    .m_clear = walk_clear,
    .m_free = walk_free,
};

PyMODINIT_FUNC
PyInit__walk(void)
{
    return PyModuleDef_Init(&walk_module);
}
