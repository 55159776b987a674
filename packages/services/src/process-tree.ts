import { readdirSync, readFileSync } from 'node:fs'

/** A process by `/proc/PID/stat`; the start time distinguishes it from a later one with the same number. */
interface ProcessStat {
  readonly pid: number
  readonly parentPid: number
  readonly isZombie: boolean
  readonly startTicks: number
  /** User and system time, including that of ended children whose parent waited for them. */
  readonly cpuTicks: number
}

/** USER_HZ: ticks per second of CPU time in `/proc`, 100 on every current Linux. */
const TICKS_PER_SECOND = 100

/** A running process and all its descendants. Empty where there is no `/proc`. */
export function processTree(rootPid: number): ProcessStat[] {
  const childrenOf = new Map<number, ProcessStat[]>()
  const stats = allProcesses()
  for (const stat of stats) {
    const siblings = childrenOf.get(stat.parentPid)
    if (siblings === undefined) childrenOf.set(stat.parentPid, [stat])
    else siblings.push(stat)
  }
  const tree = stats.filter(({ pid }) => pid === rootPid)
  for (const stat of tree) tree.push(...(childrenOf.get(stat.pid) ?? []))
  return tree
}

/** Seconds of CPU that a process and its descendants have used; `undefined` where there is no `/proc`. */
export function cpuSecondsOf(rootPid: number): number | undefined {
  const tree = processTree(rootPid)
  return tree.length === 0 ? undefined : tree.reduce((sum, { cpuTicks }) => sum + cpuTicks, 0) / TICKS_PER_SECOND
}

/** Largest resident memory so far of a process and its present descendants, summed; `undefined` where unknown. */
export function peakRssBytesOf(rootPid: number): number | undefined {
  const kibibytes = processTree(rootPid).map(({ pid }) => peakRssKibibytes(pid))
  return kibibytes.length === 0 ? undefined : kibibytes.reduce((sum, one) => sum + one, 0) * 1_024
}

/** 0 for one that has ended since. */
function peakRssKibibytes(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0)
  } catch {
    return 0
  }
}

/** Whether exactly this process still runs. */
export function isAlive({ pid, startTicks }: ProcessStat): boolean {
  const now = readStat(pid)
  return now !== undefined && now.startTicks === startTicks && !now.isZombie
}

function allProcesses(): ProcessStat[] {
  let names: string[]
  try {
    names = readdirSync('/proc')
  } catch {
    return [] // Not Linux: nobody is told more than it can know.
  }
  return names
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readStat(Number(name)))
    .filter((stat) => stat !== undefined)
}

/** proc(5): the program's name, in brackets, may contain anything, so fields count from behind it. */
function readStat(pid: number): ProcessStat | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined // It has ended since its number was read.
  }
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const numberAt = (index: number) => Number(fields[index])
  return {
    pid,
    isZombie: fields[0] === 'Z',
    parentPid: numberAt(1),
    cpuTicks: numberAt(11) + numberAt(12) + numberAt(13) + numberAt(14),
    startTicks: numberAt(19),
  }
}

/** Whether no thread of a process runs on after a SIGSTOP. Also without `/proc`, and when it has ended. */
export function standsStill(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).every((thread) =>
      /\) [TtZX] /.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1')),
    )
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ESRCH')
      return true
    throw error
  }
}
