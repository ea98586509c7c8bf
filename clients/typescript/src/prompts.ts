import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  RenderForm,
  PromptTarget,
  type RenderRequestSchema,
  type RenderResponse,
} from "./gen/hummock/v1/context_service_pb.js";
import type { Preset } from "./gen/hummock/v1/recall_pb.js";

/** Of a longer message the end is asked for, where the question stands most often. UTF-16 units, so not above the limit. */
const LONGEST_QUERY = 8192;

/** A message of a chat, as the SDKs of models have it: the content is a string, or parts of which those with a text count. */
export interface ChatMessage {
  readonly role: string;
  readonly content?: unknown;
}

/** What memory goes into a prompt. */
export interface MemoryOptions {
  /** Whose memories. One that does not exist has none. */
  project: string;
  /** Milliseconds, after which the prompt goes without. Unset means 300. */
  budgetMs?: number | undefined;
  /** How to recall. Unset means the service's default. */
  preset?: Preset | undefined;
  /** The form of the section. Unset means MEMORIES. */
  form?: RenderForm | undefined;
  /** Upper bound on the tokens of the section. Unset means what the project sets. */
  budgetTokens?: number | undefined;
  /** Told why a prompt goes without memory, which is no error to the caller. */
  onError?: ((error: unknown) => void) | undefined;
  /** Cancels the recall; the prompt goes without. */
  signal?: AbortSignal | undefined;
}

/** Asks for the system prompt with what the user's last message recalls; undefined where there is nothing to ask. */
export function renderRequest(
  messages: readonly ChatMessage[],
  options: MemoryOptions,
): MessageInitShape<typeof RenderRequestSchema> | undefined {
  const queryText = ending(textOf(messages.findLast(({ role }) => role === "user")).trim());
  if (!queryText) return undefined;
  return {
    project: options.project,
    source: { case: "recall", value: { queryText, preset: options.preset } },
    form: options.form ?? RenderForm.MEMORIES,
    budgetTokens: options.budgetTokens,
    original: { case: "prompt", value: textOf(messages.find(isSystem)) },
    target: PromptTarget.SYSTEM,
    allowMissing: true,
  };
}

/** The messages with the finished system prompt; these very ones where there is nothing to say. */
export function withSection<M extends ChatMessage>(messages: M[], reply: RenderResponse): M[] {
  const content = reply.messages[0]?.content;
  if (!reply.text || content === undefined) return messages;
  const at = messages.findIndex(isSystem);
  if (at < 0) return [{ role: "system", content } as ChatMessage as M, ...messages];
  return messages.with(at, { ...messages[at]!, content });
}

function isSystem({ role }: ChatMessage): boolean {
  return role === "system";
}

function textOf(message: ChatMessage | undefined): string {
  const content = message?.content;
  if (typeof content === "string") return content;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [];
  return parts.map(partText).filter(Boolean).join("\n");
}

function partText(part: unknown): string {
  const isText = typeof part === "object" && part !== null && "text" in part && typeof part.text === "string";
  return isText ? (part.text as string) : "";
}

/** The end of a text, which does not begin in the middle of a character. */
function ending(text: string): string {
  return text.slice(-LONGEST_QUERY).replace(/^[\uDC00-\uDFFF]/, "");
}
