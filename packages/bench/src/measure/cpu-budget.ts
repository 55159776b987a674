import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { RunError } from '../exit-codes.js'

/** Control groups of one version: where they are, and how a share of CPU time is written. */
interface ControlGroups {
  readonly root: string
  /** Of this process in `/proc/self/cgroup`. */
  readonly place: RegExp
  readonly file: string
  text(cpus: number): string
}

/** The kernel's default. A group that has used its share waits for the rest of the period. */
const PERIOD_US = 100_000
const VERSIONS: readonly ControlGroups[] = [
  {
    root: '/sys/fs/cgroup',
    place: /^0::(.*)$/m,
    file: 'cpu.max',
    text: (cpus) => `${Math.round(cpus * PERIOD_US)} ${PERIOD_US}`,
  },
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
  readonly #made: string[] = []

  private constructor(folder: string, groups: ControlGroups) {
    this.#folder = folder
    this.#groups = groups
  }

  /** @throws {RunError} that says why, where this user may limit no process. */
  static open(): CpuBudgets {
    const reasons: string[] = []
    for (const groups of VERSIONS) {
      for (const folder of foldersOf(groups)) {
        const budgets = new CpuBudgets(folder, groups)
        try {
          rmdirSync(budgets.#make('try'))
          return budgets
        } catch (error) {
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
    writeFileSync(join(group, this.#groups.file), this.#groups.text(cpus))
    writeFileSync(join(group, 'cgroup.procs'), String(pid))
  }

  /** Removes the groups. The kernel keeps a group for a moment after its last process has ended. */
  async stop(): Promise<void> {
    for (const group of this.#made.splice(0)) {
      for (let attempt = 1; existsSync(group); attempt++) {
        try {
          rmdirSync(group)
        } catch (error) {
          if (attempt === REMOVE_ATTEMPTS) throw error
          await sleep(REMOVE_INTERVAL_MS)
        }
      }
    }
  }

  #make(name: string): string {
    const group = join(this.#folder, `webmq-bench-${process.pid}-${name}`)
    mkdirSync(group)
    if (existsSync(join(group, this.#groups.file))) return group
    rmdirSync(group)
    throw new Error(`${this.#folder} gives its groups no ${this.#groups.file}`)
  }
}

/** Where a group may be made: in that of this process, and above it. */
function foldersOf({ root, place }: ControlGroups): string[] {
  if (!existsSync(root)) return []
  const [, own = '/'] = place.exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? []
  const folders: string[] = []
  for (let folder = join(root, own); folder.startsWith(root); folder = dirname(folder)) folders.push(folder)
  return folders.filter((folder) => existsSync(folder))
}
