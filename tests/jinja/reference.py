"""Chat templates as transformers runs them: Jinja2 in its sandbox, with transformers' filters, functions and blocks.
Written from the behavior, for comparison; needs Debian's python3-jinja2."""

import json

import jinja2
import jinja2.ext
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    """{% generation %}: the assistant's text, in a separate scope."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("pass_on"), [], [], body).set_lineno(line)

    def pass_on(self, caller):
        return caller()


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    result = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    result.filters["tojson"] = to_json
    result.globals["raise_exception"] = raise_exception
    # A fixed time used by both sides.
    result.globals["strftime_now"] = lambda form: f"<{form}>"
    return result


ENVIRONMENT = environment()


def render(template, context):
    """The text, or None if Jinja2 rejects the template or the conversation."""
    try:
        return ENVIRONMENT.from_string(template).render(**context)
    except Exception:  # any Python exception raised in a template
        return None
