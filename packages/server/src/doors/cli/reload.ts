import { WebMQError } from 'webmq-client/protocol'
import { loadHooks } from '../../features/hooks/load-hooks.js'
import { FileWatch } from '../../kernel/base/file-watch.js'
import type { Logger } from '../../kernel/base/logger.js'
import type { WebMQServer } from '../in-process/webmq-server.js'
import type { Hooks } from '../options/hooks.js'
import { resolveOptions } from '../options/options.js'
import type { ResolvedOptions, ServerOptions } from '../options/server-options.js'
import { optionValue, setOption } from '../options/spec.js'
import type { FileRecorder } from './option-sources.js'

interface ReloadTarget {
  readonly server: Pick<WebMQServer, 'reload'>
  readonly logger: Logger
}

/**
 * The options of a command line and where they come from. Reads all of them again when it is told to, and those that come from
 * files of their own (secrets, keys, addresses of brokers) when these change.
 */
export class Reload {
  readonly #readSources: (record: FileRecorder) => ServerOptions
  readonly #watch: FileWatch
  /** Names of the options that come from files of their own, and the paths. */
  #files: ReadonlyMap<string, ReadonlySet<string>>
  #options: ServerOptions
  /** The module of hooks: it is loaded once. */
  #hooks: { readonly file: string; readonly hooks: Hooks } | undefined
  #target: ReloadTarget | undefined

  /**
   * @param read Reads flags, environment and files; tells which options come from files of their own.
   * @param checkIntervalMs Default: 5 s.
   * @throws {WebMQError} `E_OPTION_INVALID`.
   */
  constructor(read: (record: FileRecorder) => ServerOptions, checkIntervalMs?: number) {
    this.#readSources = read
    ;({ options: this.#options, files: this.#files } = this.#read())
    this.#watch = new FileWatch({
      paths: () => [...this.#files.values()].flatMap((paths) => [...paths]),
      use: () => this.#useFiles(),
      refused: (error) => this.#refuse(error, 'a changed file could not be used; the old value stays'),
      checkIntervalMs,
    })
  }

  /** Loads the module of hooks, if one is named: what may be left out depends on what it has. */
  async loadHooks(): Promise<void> {
    const { hooks: file } = resolveOptions(this.#options)
    if (typeof file === 'string') this.#hooks = { file, hooks: await loadHooks(file) }
  }

  /** The options as they were read last, with the hooks in place of their file. */
  get options(): ServerOptions {
    return this.#withHooks(this.#options)
  }

  #withHooks(options: ServerOptions): ServerOptions {
    return this.#hooks !== undefined && options.hooks === this.#hooks.file
      ? { ...options, hooks: this.#hooks.hooks }
      : options
  }

  /** @throws {WebMQError} `E_OPTION_INVALID`, `E_INSECURE`. */
  get resolved(): ResolvedOptions {
    return resolveOptions(this.options)
  }

  /** From now on, changes go to this server. */
  async start(server: Pick<WebMQServer, 'reload'>, logger: Logger): Promise<void> {
    this.#target = { server, logger }
    await this.#watch.remember()
    this.#watch.start()
  }

  stop(): void {
    this.#watch.stop()
    this.#target = undefined
  }

  /** Reads everything again. What is wrong with it is logged; nothing has changed then. */
  all(): void {
    if (this.#target === undefined) return
    const { logger } = this.#target
    try {
      const { options, files } = this.#read()
      const { changed, needRestart } = this.#use(options)
      this.#files = files
      logger.info({ changed: changed.length, needRestart: needRestart.length }, 'the options were read again')
    } catch (error) {
      this.#refuse(error, 'the options could not be read again; nothing has changed')
    }
  }

  /** The config file is left alone: it may be half edited. */
  #useFiles(): void {
    const { options } = this.#read()
    const merged: Record<string, unknown> = { ...this.#options }
    for (const name of this.#files.keys()) setOption(merged, name, optionValue(options, name))
    this.#use(merged as ServerOptions)
  }

  #use(options: ServerOptions): ReturnType<WebMQServer['reload']> {
    const { server, logger } = this.#target ?? {}
    const result = server?.reload({ ...this.#withHooks(options), logger }) ?? { changed: [], needRestart: [] }
    this.#options = options
    return result
  }

  #read(): { readonly options: ServerOptions; readonly files: ReadonlyMap<string, ReadonlySet<string>> } {
    const files = new Map<string, Set<string>>()
    const options = this.#readSources((name, path) => {
      const paths = files.get(name) ?? new Set()
      files.set(name, paths.add(path))
    })
    return { options, files }
  }

  #refuse(error: unknown, message: string): void {
    const code = error instanceof WebMQError ? error.code : 'E_INTERNAL'
    this.#target?.logger.error({ code, err: error }, message)
  }
}
