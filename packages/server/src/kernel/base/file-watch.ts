import { stat } from 'node:fs/promises'

/**
 * Time between two looks at the files. Looking works where notifications do not: on network volumes, and where Kubernetes
 * exchanges a link above them. Cost: one `stat` per file.
 */
const CHECK_INTERVAL_MS = 5_000

export interface FileWatchContext {
  readonly paths: () => readonly string[]
  /** Uses the changed files; when it throws, the old contents stay in use. */
  readonly use: () => Promise<void> | void
  /** The changed files could not be used, twice. */
  readonly refused: (error: unknown) => void
  readonly looked?: () => void
  /** Default: 5 s. */
  readonly checkIntervalMs?: number | undefined
}

/**
 * Looks at files until they change. Files that cannot be used are often half written, as a certificate without its key; they
 * get one more interval before that counts as a failure.
 */
export class FileWatch {
  readonly #context: FileWatchContext
  /** States of the files: of those in use, of a first attempt that failed, and of one that was reported. */
  #usedState = ''
  #failedState: string | undefined
  #refusedState: string | undefined
  #timer: NodeJS.Timeout | undefined
  #checking: Promise<void> | undefined

  constructor(context: FileWatchContext) {
    this.#context = context
  }

  /** Whether it looks: false before `start` and after `stop`. */
  get isRunning(): boolean {
    return this.#timer !== undefined
  }

  /** Whether the files are other ones than those in use, and were {@link FileWatchContext.refused refused}. */
  get isRefused(): boolean {
    return this.#refusedState !== undefined
  }

  /** Call it before the files are read for the first time: then the first look finds changes in between. */
  async remember(): Promise<void> {
    this.#usedState = await this.#state()
  }

  /** Looks at the files from now on. Does not keep the process alive. */
  start(): void {
    this.#timer = setInterval(() => this.check(), this.#context.checkIntervalMs ?? CHECK_INTERVAL_MS)
    this.#timer.unref()
  }

  /** Looks now; nothing happens before `start`. */
  check(): void {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined
    })
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #check(): Promise<void> {
    const { looked, use, refused } = this.#context
    looked?.()
    const state = await this.#state()
    // Somebody has put the old ones back.
    if (state === this.#usedState) this.#refusedState = undefined
    if (state === this.#usedState || state === this.#refusedState || !this.isRunning) return
    try {
      await use()
      this.#usedState = state
      this.#refusedState = undefined
    } catch (error) {
      const isFirstFailure = state !== this.#failedState
      this.#failedState = state
      if (isFirstFailure) return
      this.#refusedState = state
      refused(error)
    }
  }

  /** A text that changes when a file is written, replaced or reachable by another link. */
  async #state(): Promise<string> {
    const states = await Promise.all(
      this.#context.paths().map(async (path) => {
        try {
          const { ino, size, mtimeMs, ctimeMs } = await stat(path)
          return `${ino} ${size} ${mtimeMs} ${ctimeMs}`
        } catch (error) {
          return String(error)
        }
      }),
    )
    return states.join('\n')
  }
}
