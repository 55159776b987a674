import { readdirSync, readFileSync } from 'node:fs'

/** A process as `/proc/PID/stat` shows it; the start time tells it from a later one with the same number. */
interface ProcessStat {
  readonly pid: number
  readonly parentPid: number
  readonly isZombie: boolean
  readonly startTicks: number
  /** User and system time, that of children which have ended and been waited for included. */
  readonly cpuTicks: number
}

/** USER_HZ: what the kernel counts CPU time in towards programs, 100 on every Linux of today. */
const TICKS_PER_SECOND = 100

/** The processes below one that runs, itself included. Empty where there is no `/proc`. */
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

/** Seconds of CPU that a process and all below it have used; `undefined` where there is no `/proc`. */
export function cpuSecondsOf(rootPid: number): number | undefined {
  const tree = processTree(rootPid)
  return tree.length === 0 ? undefined : tree.reduce((sum, { cpuTicks }) => sum + cpuTicks, 0) / TICKS_PER_SECOND
}

/** Largest resident memory so far of a process and of all that are below it now, added up; `undefined` where that cannot be known. */
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

/** Whether this very process still runs. */
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

/** proc(5): the name of the program, in brackets, may hold anything; the fields are counted from behind it. */
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
