import { type HummockClient, ListOrder, type Memory, MemoryKind, MemoryView } from "hummock";
import { type Anchor, anchorOf, below, filesNamed, filesOf, names, PATH } from "./paths.js";

/** Learning records and domains that are looked through for the file, the newest ones. */
const LOOKED_THROUGH = 1000;
const LISTED = 200;

/** A memory that names a file. */
export interface FileMemory {
  readonly memory: Memory;
  /** Where in the file; undefined where it is about all of it. */
  readonly anchor: Anchor | undefined;
}

/** A file and what it is called: below the folder that is open, and below the root of its repository. */
export interface NamedFile {
  readonly file: string;
  readonly folder: string;
  readonly root: string;
}

/** The memories of a project that name a file. */
export class FileMemories {
  readonly #client: HummockClient;
  readonly #project: string;
  #records: Promise<Memory[]> | undefined;

  constructor(client: HummockClient, project: string) {
    this.#client = client;
    this.#project = project;
  }

  /** Has learning records and domains read again: some have changed. */
  forgetRecords(): void {
    this.#records = undefined;
  }

  /**
   * Notes first, then what rests on the file, then its code by line: at most 200 notes and 200 fragments.
   *
   * @throws HummockError
   */
  async of(named: NamedFile): Promise<FileMemory[]> {
    const { file, folder, root } = named;
    const inRoot = below(root, file);
    const path = below(folder, file) ?? inRoot;
    if (path === undefined) return [];
    const [notes, records, code] = await Promise.all([
      this.#list({ metadata: { [PATH]: inRoot ?? path } }),
      this.#recordsOf(),
      this.#list({ paths: [path], kinds: [MemoryKind.CODE_FRAGMENT] }),
    ]);
    const folders = [...new Set([folder, root])];
    const resting = records.filter(memory => filesOf(memory).some(end => names(end, inRoot ?? path)));
    const fragments = code.filter(memory => {
      const anchor = anchorOf(memory);
      return anchor && filesNamed(memory, anchor, folders).includes(file);
    });
    const found = [...notes, ...resting, ...fragments].map(memory => ({ memory, anchor: anchorOf(memory) }));
    return [...new Map(found.map(each => [each.memory.id, each])).values()].sort(
      (one, other) => groupOf(one) - groupOf(other) || lineOf(one) - lineOf(other),
    );
  }

  async #recordsOf(): Promise<Memory[]> {
    this.#records ??= this.#list({ kinds: [MemoryKind.LEARNING_RECORD, MemoryKind.DOMAIN_KNOWLEDGE] }, LOOKED_THROUGH);
    try {
      return await this.#records;
    } catch (error) {
      this.#records = undefined;
      throw error;
    }
  }

  async #list(filter: Filter, limit: number = LISTED): Promise<Memory[]> {
    const memories: Memory[] = [];
    let pageToken = "";
    do {
      const reply = await this.#client.memories.listMemories({
        project: this.#project,
        filter,
        pageToken,
        pageSize: limit,
        view: MemoryView.FULL,
        order: ListOrder.NEWEST_FIRST,
        allowMissing: true,
      });
      memories.push(...reply.memories);
      pageToken = reply.nextPageToken;
    } while (pageToken && memories.length < limit);
    return memories.slice(0, limit);
  }
}

type Filter = Parameters<HummockClient["deleteWhere"]>[1];

function groupOf({ memory, anchor }: FileMemory): number {
  return memory.kind === MemoryKind.CODE_FRAGMENT ? 2 : anchor ? 0 : 1;
}

function lineOf({ anchor }: FileMemory): number {
  return anchor?.startLine ?? 0;
}
