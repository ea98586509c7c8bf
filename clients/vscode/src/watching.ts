import { setTimeout as sleep } from "node:timers/promises";
import { type HummockClient, HummockError, type MemoryEvent, MemoryKind } from "hummock";

const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 10_000;

/** What a watch tells. */
export interface WatchCallbacks {
  /** Something has changed; `records` says whether learning records or domains may have. */
  readonly onChange: (records: boolean) => void;
  /** The service answers, or why it does not. */
  readonly onReach: (error: Error | undefined) => void;
}

/**
 * Follows what becomes of a project's memories until the signal ends it. Where the service is away it tries again,
 * after 2 seconds and up to 10.
 */
export async function follow(
  client: HummockClient,
  project: string,
  callbacks: WatchCallbacks,
  signal: AbortSignal,
): Promise<void> {
  let afterSeq: bigint | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      for await (const { seq, news } of client.watchMemories({ project, afterSeq }, { signal })) {
        if (news.case === "start" || afterSeq === undefined) callbacks.onReach(undefined);
        pauseMs = FIRST_PAUSE_MS;
        afterSeq = seq;
        if (news.case === "reset") callbacks.onChange(true);
        if (news.case === "events" && news.value.events.length) {
          callbacks.onChange(news.value.events.some(mayBeRecord));
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      callbacks.onReach(error instanceof Error ? error : new Error(String(error)));
      if (!isWorthTrying(error)) return;
    }
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
  }
}

/** Another token or target makes another client. */
function isWorthTrying(error: unknown): boolean {
  return error instanceof HummockError && !["UNAUTHENTICATED", "PERMISSION_DENIED"].includes(error.code);
}

/** What a removed memory was is no longer known. */
function mayBeRecord({ memory }: MemoryEvent): boolean {
  return !memory || [MemoryKind.LEARNING_RECORD, MemoryKind.DOMAIN_KNOWLEDGE].includes(memory.kind);
}
