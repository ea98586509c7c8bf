import { type MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Calls, callsOf, type Deadlines } from "./calls.js";
import { Connection, type ConnectionOptions } from "./connection.js";
import { AdminService } from "./gen/hummock/v1/admin_service_pb.js";
import {
  ContextService,
  type LearnResponse,
  RenderRequestSchema,
  type RenderResponse,
  type RenderTurnRequestSchema,
  type RenderTurnResponse,
  type SearchRequestSchema,
  type SearchResponse,
} from "./gen/hummock/v1/context_service_pb.js";
import { LearningService } from "./gen/hummock/v1/learning_service_pb.js";
import {
  MemoryService,
  type WatchMemoriesRequestSchema,
  type WatchMemoriesResponse,
} from "./gen/hummock/v1/memory_service_pb.js";
import { type MemoryFilterSchema, MemoryKind } from "./gen/hummock/v1/memory_pb.js";
import { type DeleteProjectResponse, ProjectService } from "./gen/hummock/v1/project_service_pb.js";
import type { RecallRequestSchema, RecallResponse } from "./gen/hummock/v1/recall_pb.js";
import { SessionService } from "./gen/hummock/v1/session_service_pb.js";
import { type ChatMessage, type MemoryOptions, renderRequest, withSection } from "./prompts.js";
import { messageOf } from "./requests.js";

const PROMPT_BUDGET_MS = 300;
const WARMING_MS = 30_000;
const WARMING_QUERY = "?";

/** Options of a client. */
export interface ClientOptions extends ConnectionOptions {
  /** Of calls that do not say otherwise. */
  deadlines?: Deadlines | undefined;
}

/**
 * A client of Hummock: one connection, which is opened at once, and again when it is needed.
 *
 * Every call of the contract is there, service by service, with a default deadline and repeats: of reads, and of writes,
 * which get a request_id where they have none. Requests are plain objects. The methods of the client itself are for
 * programs that may come before anything was learnt: to them a project that does not exist is empty, not an error.
 */
export class HummockClient {
  /** Recall, render, learn, search, explain. */
  readonly context: Calls<typeof ContextService>;
  /** The memories as people tend them. */
  readonly memories: Calls<typeof MemoryService>;
  /** Conversations. */
  readonly sessions: Calls<typeof SessionService>;
  /** Projects, their settings, export and import. */
  readonly projects: Calls<typeof ProjectService>;
  /** What a project learns beside the calls. */
  readonly learning: Calls<typeof LearningService>;
  /** What runs. */
  readonly admin: Calls<typeof AdminService>;
  readonly #connection: Connection;

  /** @throws TypeError The target is none, or the token would be sent in the clear to another machine. */
  constructor(options: ClientOptions = {}) {
    const connection = new Connection(options);
    const deadlines = options.deadlines ?? {};
    this.#connection = connection;
    this.context = callsOf(ContextService, connection, deadlines);
    this.memories = callsOf(MemoryService, connection, deadlines);
    this.sessions = callsOf(SessionService, connection, deadlines);
    this.projects = callsOf(ProjectService, connection, deadlines);
    this.learning = callsOf(LearningService, connection, deadlines);
    this.admin = callsOf(AdminService, connection, deadlines);
  }

  /** Finds the memories that bear on a query. */
  recall(request: MessageInitShape<typeof RecallRequestSchema>, options?: CallOptions): Promise<RecallResponse> {
    return this.context.recall({ allowMissing: true, ...request }, options);
  }

  /** Searches code and knowledge together. */
  search(request: MessageInitShape<typeof SearchRequestSchema>, options?: CallOptions): Promise<SearchResponse> {
    return this.context.search({ allowMissing: true, ...request }, options);
  }

  /** Writes a section of a prompt, and counts nothing. */
  render(request: MessageInitShape<typeof RenderRequestSchema>, options?: CallOptions): Promise<RenderResponse> {
    return this.context.render({ allowMissing: true, ...request }, options);
  }

  /** Renders a turn's prompt and counts it. */
  renderTurn(
    request: MessageInitShape<typeof RenderTurnRequestSchema>,
    options?: CallOptions,
  ): Promise<RenderTurnResponse> {
    const render = messageOf(RenderRequestSchema, { allowMissing: true, ...request.render });
    return this.context.renderTurn({ ...request, render }, options);
  }

  /** What becomes of a project's memories, without end; when it throws, watch again with the last seq as `afterSeq`. */
  watchMemories(
    request: MessageInitShape<typeof WatchMemoriesRequestSchema>,
    options?: CallOptions,
  ): AsyncGenerator<WatchMemoriesResponse, void> {
    return this.memories.watchMemories({ allowMissing: true, ...request }, options);
  }

  /** Stores one sentence. With a `requestId` of your own, a UUID, the call can be made again and counts once. */
  note(
    project: string,
    text: string,
    options: CallOptions & { tags?: string[]; requestId?: string } = {},
  ): Promise<LearnResponse> {
    const memory = { kind: MemoryKind.NOTE, content: text, tags: options.tags ?? [] };
    return this.context.learn({ project, memories: [memory], requestId: options.requestId ?? "" }, options);
  }

  /** Removes a project with all that it has; the reply counts it. */
  deleteProject(project: string, options?: CallOptions): Promise<DeleteProjectResponse> {
    return this.projects.deleteProject({ project }, options);
  }

  /**
   * Removes all memories that pass a filter, which has one condition at least, and says how many that were. One call
   * removes a few hundred, so there may be several: `timeoutMs` is of each. Where one throws, do it again.
   */
  async deleteWhere(
    project: string,
    filter: MessageInitShape<typeof MemoryFilterSchema>,
    options?: CallOptions,
  ): Promise<number> {
    let removed = 0;
    for (;;) {
      const reply = await this.memories.deleteMemories({ project, filter }, options);
      removed += reply.deletedCount;
      if (reply.remainingCount === 0) return removed;
    }
  }

  /**
   * Has the service read a project, and this process the code that asks it, in the background: call it early, and
   * `withMemory` is in time from the first prompt on.
   */
  warmUp(project: string): void {
    const request = renderRequest([{ role: "user", content: WARMING_QUERY }], { project });
    // Whoever asks later hears what is wrong.
    this.context.render(request!, { timeoutMs: WARMING_MS }).catch(() => undefined);
  }

  /**
   * The messages of a chat with what the user's last one recalls in the system prompt, in a new one if there is none.
   *
   * It never throws: where nothing was recalled, the service is away or slow, or anything else is wrong, these very
   * messages come back when the budget ends or before. `onError` is told why.
   */
  async withMemory<M extends ChatMessage>(messages: M[], options: MemoryOptions): Promise<M[]> {
    try {
      const request = renderRequest(messages, options);
      if (!request) return messages;
      const limits = { timeoutMs: options.budgetMs ?? PROMPT_BUDGET_MS, signal: options.signal };
      return withSection(messages, await this.context.render(request, limits));
    } catch (error) {
      options.onError?.(error);
      return messages;
    }
  }

  /** Ends the connection, the calls that are under way, and all later ones: they throw CANCELLED. */
  close(): void {
    this.#connection.close();
  }

  /** Closes it at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.close();
  }
}
