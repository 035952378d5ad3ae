"""What the libraries raise on a file that isn't as it should be."""

import struct
import zipfile
import zlib

import xlrd
from lxml.etree import LxmlError

MALFORMED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    LxmlError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    xlrd.XLRDError,
    zipfile.BadZipFile,
    zlib.error,
)
