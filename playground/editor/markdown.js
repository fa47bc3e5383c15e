// The description of a scenario as HTML. micromark (MIT) leaves out raw HTML and addresses with scripts.

import { micromark } from "micromark";
import { gfmTable, gfmTableHtml } from "micromark-extension-gfm-table";

const html = (text) => micromark(text, { extensions: [gfmTable(), { disable: { null: ["labelStartImage"] } }], htmlExtensions: [gfmTableHtml()] });

globalThis.TalkspurtMarkdown = { html };
