import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { RunError } from '../exit-codes.js'

/** The calls of `node:fs` that control groups need. */
export type GroupFiles = Pick<typeof fs, 'existsSync' | 'mkdirSync' | 'readFileSync' | 'rmdirSync' | 'writeFileSync'>

/** Control groups of one version: where they are, and how a share of CPU time is written. */
interface ControlGroups {
  readonly root: string
  /** Of this process in `/proc/self/cgroup`. */
  readonly place: RegExp
  readonly file: string
  /** Names the controllers that a folder's groups have; absent: they have that of `root`. */
  readonly controllers?: string
  text(cpus: number): string
}

/** The kernel's default. A group that has used its share waits for the rest of the period. */
const PERIOD_US = 100_000
/** The second version has one tree for all controllers; a folder gives them to its groups only when it is told to. */
const VERSIONS: readonly ControlGroups[] = [
  ...['/sys/fs/cgroup', '/sys/fs/cgroup/unified'].map((root) => ({
    root,
    place: /^0::(.*)$/m,
    file: 'cpu.max',
    controllers: 'cgroup.subtree_control',
    text: (cpus: number) => `${Math.round(cpus * PERIOD_US)} ${PERIOD_US}`,
  })),
  ...['cpu', 'cpu,cpuacct'].map((name) => ({
    root: `/sys/fs/cgroup/${name}`,
    place: /^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:(.*)$/m,
    file: 'cpu.cfs_quota_us',
    text: (cpus: number) => String(Math.round(cpus * PERIOD_US)),
  })),
]
const REMOVE_ATTEMPTS = 20
const REMOVE_INTERVAL_MS = 50

/** Shares of CPU time for processes, by control groups of Linux. Stop it after the processes have ended. */
export class CpuBudgets {
  readonly #folder: string
  readonly #groups: ControlGroups
  readonly #files: GroupFiles
  readonly #made: string[] = []
  /** Whether this object has told the folder to give its groups the controller. */
  #hasEnabled = false

  private constructor(folder: string, groups: ControlGroups, files: GroupFiles) {
    this.#folder = folder
    this.#groups = groups
    this.#files = files
  }

  /** @throws {RunError} that says why, where this user may limit no process. */
  static open(files: GroupFiles = fs): CpuBudgets {
    const reasons: string[] = []
    for (const groups of VERSIONS) {
      for (const folder of foldersOf(groups, files)) {
        const budgets = new CpuBudgets(folder, groups, files)
        try {
          budgets.#enable()
          files.rmdirSync(budgets.#make('try'))
          return budgets
        } catch (error) {
          budgets.#disable()
          reasons.push(error instanceof Error ? error.message : String(error))
        }
      }
    }
    const reason = reasons.at(-1) ?? 'this system has none with a limit of CPU time'
    throw new RunError(`--node-cpus needs control groups that this user may write: ${reason}`)
  }

  /** Moves a process, with all its threads, into a group that gets this many cores' worth of time. */
  limit(pid: number, cpus: number): void {
    const group = this.#make(String(pid))
    this.#made.push(group)
    this.#files.writeFileSync(join(group, this.#groups.file), this.#groups.text(cpus))
    this.#files.writeFileSync(join(group, 'cgroup.procs'), String(pid))
  }

  /** Removes the groups. The kernel keeps a group for a moment after its last process has ended. */
  async stop(): Promise<void> {
    for (const group of this.#made.splice(0)) {
      for (let attempt = 1; this.#files.existsSync(group); attempt++) {
        try {
          this.#files.rmdirSync(group)
        } catch (error) {
          if (attempt === REMOVE_ATTEMPTS) throw error
          await sleep(REMOVE_INTERVAL_MS)
        }
      }
    }
    this.#disable()
  }

  /** Fails in a folder with processes of its own, unless it is the root of the tree. */
  #enable(): void {
    const { controllers } = this.#groups
    if (controllers === undefined) return
    const file = join(this.#folder, controllers)
    if (/\bcpu\b/.test(this.#files.readFileSync(file, 'utf8'))) return
    this.#files.writeFileSync(file, '+cpu')
    this.#hasEnabled = true
  }

  #disable(): void {
    if (this.#hasEnabled) this.#files.writeFileSync(join(this.#folder, this.#groups.controllers ?? ''), '-cpu')
    this.#hasEnabled = false
  }

  #make(name: string): string {
    const group = join(this.#folder, `webmq-bench-${process.pid}-${name}`)
    this.#files.mkdirSync(group)
    if (this.#files.existsSync(join(group, this.#groups.file))) return group
    this.#files.rmdirSync(group)
    throw new Error(`${this.#folder} gives its groups no ${this.#groups.file}`)
  }
}

/** Where a group may be made: in that of this process, and above it. */
function foldersOf({ root, place, controllers }: ControlGroups, files: GroupFiles): string[] {
  if (!files.existsSync(join(root, controllers ?? ''))) return []
  const [, own = '/'] = place.exec(files.readFileSync('/proc/self/cgroup', 'utf8')) ?? []
  const folders: string[] = []
  for (let folder = join(root, own); folder.startsWith(root); folder = dirname(folder)) folders.push(folder)
  return folders.filter((folder) => files.existsSync(folder))
}
