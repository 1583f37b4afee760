"use strict";

const $ = id => document.getElementById(id);
const conversation = []; // of {role, content}
let running = null; // the AbortController of the answer in progress

// --- Markdown as elements: text is never parsed as HTML. ---

/** Appends the inline markup of `text` to `parent`: code, bold, italics and links to the web. */
function appendInline(parent, text) {
  // Bounded, so that the time is proportional to the text, whatever a model repeats.
  const pattern = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\[\]]{1,500})\]\((https?:\/\/[^\s)]{1,2000})\)/g;
  let last = 0;
  for (const found of text.matchAll(pattern)) {
    parent.append(text.slice(last, found.index));
    const [whole, code, bold, italic, label, target] = found;
    const element = document.createElement(code ? "code" : bold ? "strong" : italic ? "em" : "a");
    element.textContent = code ?? bold ?? italic ?? label;
    if (target) {
      element.href = target;
      element.rel = "noopener noreferrer nofollow";
      element.target = "_blank";
    }
    parent.append(element);
    last = found.index + whole.length;
  }
  parent.append(text.slice(last));
}

function appendBlock(parent, tag, text) {
  const element = document.createElement(tag);
  appendInline(element, text);
  parent.append(element);
  return element;
}

/** The cells of a line that is a row of a table, which begins and ends with "|"; "\\|" is a character. */
function cellsOf(line) {
  const row = line.trim();
  return row.length > 1 && row.startsWith("|") && row.endsWith("|")
      ? row.slice(1, -1).split(/(?<!\\)\|/).map(cell => cell.trim().replaceAll("\\|", "|")) : null;
}

function appendRow(part, tag, cells) {
  const row = document.createElement("tr");
  for (const cell of cells)
    appendBlock(row, tag, cell);
  part.append(row);
}

/** Appends a table whose first row is `cells`; returns its body. */
function appendTable(parent, cells) {
  const frame = document.createElement("div"), table = document.createElement("table");
  frame.className = "table";
  frame.tabIndex = 0; // so that keys scroll it
  const body = document.createElement("tbody");
  appendRow(table.createTHead(), "th", cells);
  table.append(body);
  frame.append(table);
  parent.append(frame);
  return body;
}

/** Of nested lists. Deeper items are of the innermost list: the width of the screen is limited, and so is the work per item. */
const maxDepth = 8;

/** Appends an item to the innermost of the open `lists`, of {element, indent}, that is not deeper than `indent`, or to a new one. */
function appendItem(parent, lists, indent, number, text) {
  const tag = number ? "OL" : "UL";
  while (lists.length > 1 && indent < lists.at(-1).indent)
    lists.pop();
  const last = lists.at(-1), nested = last && indent > last.indent + 1 && lists.length < maxDepth;
  if (!last || nested || last.element.tagName !== tag) {
    const outer = nested ? last.element.lastElementChild : (lists.length > 1 ? last.element.parentElement : parent);
    const element = document.createElement(tag);
    if (number)
      element.start = Number(number);
    outer.append(element);
    if (last && !nested)
      lists.pop();
    lists.push({element, indent});
  }
  appendBlock(lists.at(-1).element, "li", text);
}

/** Appends the Markdown `text` to `parent`: fences, headings, lists, tables, paragraphs. Returns where the last block begins: its place in
    `text`, and the number of elements before it. More text may change this block, but none before it. */
function appendMarkdown(parent, text) {
  let lists = [], paragraph = null, code = null, table = null;
  let place = 0, last = {place: 0, elements: parent.childElementCount};
  const lines = text.split("\n");
  for (const [at, line] of lines.entries()) {
    const cells = code ? null : cellsOf(line), item = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/.exec(line);
    if (!lists.length && !paragraph && !code && !table)
      last = {place, elements: parent.childElementCount};
    // Blank lines between items do not end a list. A line that does may become an item as it grows.
    if (line.trim() && !item)
      lists = [];
    place += line.length + 1;
    if (table && cells) {
      if (!table.isRuled)
        table.isRuled = true; // the line between the head and the body
      else
        appendRow(table.body, "td", cells.slice(0, table.count));
      continue;
    }
    table = null;
    if (/^\s*```/.test(line)) {
      if (code) {
        code = null;
      } else {
        const block = document.createElement("pre");
        block.tabIndex = 0; // so that keys scroll it
        code = document.createElement("code");
        block.append(code);
        parent.append(block);
      }
      paragraph = null;
      continue;
    }
    if (code) {
      code.append(line + "\n");
      continue;
    }
    const heading = /^(#{1,6})\s+(.*)$/.exec(line), rule = cells && cellsOf(lines[at + 1] ?? "");
    if (heading) {
      appendBlock(parent, "h" + Math.min(heading[1].length + 1, 6), heading[2]);
      paragraph = null;
    } else if (item) {
      appendItem(parent, lists, item[1].replaceAll("\t", "    ").length, item[2], item[3]);
      paragraph = null;
    } else if (!line.trim()) {
      paragraph = null;
    } else if (rule?.length === cells?.length && rule?.every(cell => /^:?-+:?$/.test(cell))) {
      table = {body: appendTable(parent, cells), count: cells.length, isRuled: false};
      paragraph = null;
    } else if (paragraph) {
      paragraph.append(document.createElement("br"));
      appendInline(paragraph, line);
    } else {
      paragraph = appendBlock(parent, "p", line);
    }
  }
  return last;
}

/** Replaces the content of `parent` by the Markdown `text`. */
function renderMarkdown(parent, text) {
  parent.replaceChildren();
  appendMarkdown(parent, text);
}

/** Markdown that grows: the element's content is replaced from the last block on. */
class GrowingMarkdown {
  constructor(parent) {
    this.parent = parent;
    this.last = {place: 0, elements: 0};
  }

  /** `text` begins with that of the previous call. */
  render(text) {
    while (this.parent.childElementCount > this.last.elements)
      this.parent.lastElementChild.remove();
    const last = appendMarkdown(this.parent, text.slice(this.last.place));
    this.last = {place: this.last.place + last.place, elements: last.elements};
  }
}

// --- The conversation. ---

function showMessage(role, text) {
  const element = document.createElement("article");
  element.className = "message " + role;
  element.setAttribute("aria-label", role === "user" ? "You" : role === "error" ? "Error" : "Model");
  element.textContent = text;
  $("messages").append(element);
  element.scrollIntoView({block: "end"});
  return element;
}

function headers() {
  const key = $("key").value;
  return {"Content-Type": "application/json", ...(key ? {Authorization: "Bearer " + key} : {})};
}

function requestBody() {
  const system = $("system").value.trim();
  const messages = system ? [{role: "system", content: system}, ...conversation] : conversation;
  const body = {messages, stream: true, stream_options: {include_usage: true}};
  for (const name of numbers)
    if ($(name).value !== "")
      body[name] = Number($(name).value);
  const stops = $("stops").value.split("\n").filter(text => text);
  if (stops.length)
    body.stop = stops.map(text => text.replaceAll("\\n", "\n"));
  return body;
}

// --- Settings. ---

/** Fields of a request. */
const numbers = ["temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "max_tokens", "seed"];
/** What the browser keeps: all but the API key, which is a secret. */
const kept = [...numbers, "stops", "system"];

/** Storage may be full or forbidden: then settings are not kept. */
function keepSettings() {
  try {
    localStorage.setItem("settings", JSON.stringify(Object.fromEntries(kept.map(name => [name, $(name).value]))));
  } catch {
  }
}

function restoreSettings() {
  try {
    const stored = JSON.parse(localStorage.getItem("settings")) ?? {};
    for (const name of kept)
      if (typeof stored[name] === "string")
        $(name).value = stored[name];
  } catch {
  }
}

/** Yields the JSON of each server-sent event of a response. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done)
      return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts)
      if (part.startsWith("data: ") && part !== "data: [DONE]")
        yield JSON.parse(part.slice(6));
  }
}

function setRunning(controller) {
  running = controller;
  $("send").hidden = controller !== null;
  $("stop").hidden = controller === null;
  $("regenerate").disabled = controller !== null || !conversation.some(message => message.role === "assistant");
}

async function errorOf(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return "the server answers with status " + response.status;
  }
}

/** Shows the reasoning before an answer, collapsed. */
function showReasoning(element, text) {
  if (!element.querySelector(".reasoning")) {
    const details = document.createElement("details"), summary = document.createElement("summary");
    details.className = "reasoning";
    summary.textContent = "Reasoning";
    details.append(summary, document.createElement("div"));
    element.prepend(details);
  }
  element.querySelector(".reasoning > div").textContent = text;
}

/** Moves the question, which has no answer, back to the input, before what has been typed meanwhile. */
function discardQuestion() {
  const question = conversation.pop().content;
  [...document.querySelectorAll(".message.user")].at(-1)?.remove();
  $("input").value = [question, $("input").value].filter(text => text).join("\n");
}

/** Adds the model's answer to the conversation. `old`: the element of the answer that it replaces, as soon as it has begun. */
async function answer(old = null) {
  const controller = new AbortController();
  setRunning(controller);
  $("status").textContent = "";
  const element = showMessage("assistant", ""), content = document.createElement("div");
  const replaced = old ? conversation.pop() : null;
  if (old)
    element.setAttribute("aria-label", "New answer");
  content.textContent = "…";
  element.append(content);
  const begin = performance.now();
  const markdown = new GrowingMarkdown(content);
  let text = "", reasoning = "", first = 0, usage = null, finished = false, problem = null, frame = 0;
  /** Shows what has come so far. */
  function show() {
    frame = 0;
    if (text || reasoning || finished) {
      old?.remove();
      element.setAttribute("aria-label", "Model");
    }
    // Scrolls with the answer, unless the reader has scrolled back.
    const list = $("messages"), atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 30;
    if (reasoning)
      showReasoning(element, reasoning);
    if (text) {
      if (!content.childElementCount)
        content.replaceChildren();
      markdown.render(text);
    } else {
      content.textContent = finished ? "(no text)" : "…";
    }
    if (atEnd)
      list.scrollTop = list.scrollHeight;
  }
  try {
    const response = await fetch("v1/chat/completions",
                                 {method: "POST", headers: headers(), body: JSON.stringify(requestBody()), signal: controller.signal});
    if (!response.ok)
      throw new Error(await errorOf(response));
    for await (const event of events(response)) {
      if (event.error)
        throw new Error(event.error.message);
      usage = event.usage ?? usage;
      const choice = event.choices[0];
      finished ||= Boolean(choice?.finish_reason);
      text += choice?.delta?.content ?? "";
      reasoning += choice?.delta?.reasoning_content ?? "";
      first = first || performance.now();
      // Events may come faster than frames.
      frame ||= requestAnimationFrame(show);
    }
    if (!finished)
      throw new Error("the connection was closed before the end of the answer");
  } catch (error) {
    problem = error;
  }
  cancelAnimationFrame(frame);
  // The conversation has been reset meanwhile: this answer is not a part of the new one.
  if (running !== controller)
    return;
  // There are no frames in the background.
  show();
  if (text || finished) {
    conversation.push({role: "assistant", content: text});
  } else if (old) {
    element.replaceWith(old);
    conversation.push(replaced);
  } else {
    element.remove();
    discardQuestion();
  }
  if (problem && problem.name !== "AbortError")
    showMessage("error", problem.message);
  if (usage) {
    const seconds = (performance.now() - first) / 1000;
    const speed = usage.completion_tokens > 1 && seconds > 0 ? ((usage.completion_tokens - 1) / seconds).toFixed(1) : "–";
    $("status").textContent = `${usage.completion_tokens} tokens, ${speed} per second; prompt ${usage.prompt_tokens} tokens, ` +
        `${usage.prompt_tokens_details.cached_tokens} cached; first after ${((first - begin) / 1000).toFixed(2)} s`;
  }
  setRunning(null);
  $("input").focus();
}

function send() {
  const text = $("input").value.trim();
  if (!text || running)
    return;
  $("input").value = "";
  conversation.push({role: "user", content: text});
  showMessage("user", text);
  answer();
}

function regenerate() {
  if (running || conversation.at(-1)?.role !== "assistant")
    return;
  answer([...document.querySelectorAll(".message.assistant")].at(-1));
}

$("form").addEventListener("submit", event => {
  event.preventDefault();
  send();
});
$("input").addEventListener("keydown", event => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send();
  }
});
document.addEventListener("keydown", event => {
  if (event.key === "Escape")
    running?.abort();
});
$("stop").addEventListener("click", () => running?.abort());
$("regenerate").addEventListener("click", regenerate);
$("reset").addEventListener("click", () => {
  running?.abort();
  conversation.length = 0;
  setRunning(null);
  $("messages").replaceChildren();
  $("status").textContent = "";
  $("input").focus();
});

/** Shows the model's name, if the server tells it without a key or with the given one. */
async function showModel() {
  const response = await fetch("v1/models", {headers: headers()}).catch(() => null);
  if (!response?.ok)
    return;
  const [model] = (await response.json()).data;
  $("model").textContent = model.id;
  document.title = model.id + " – Mica";
  if (!model.meta.chat)
    showMessage("error", "This program has no chat template: use /v1/completions.");
}
for (const name of kept)
  $(name).addEventListener("input", keepSettings);
restoreSettings();
$("key").addEventListener("change", showModel);
showModel();
