import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os'
import { fileURLToPath } from 'node:url'

/** The machine of a result. It does not name the machine or its user. */
export interface MachineInfo {
  readonly cpuModel: string
  /** Cores this process may use. */
  readonly cores: number
  readonly memoryBytes: number
  readonly kernel: string
  readonly nodeVersion: string
  /** TCP congestion control of new sockets; `null` where the kernel does not say. */
  readonly congestionControl: string | null
  readonly cpuGovernor: string | null
  /** Soft limit of open files per process. */
  readonly openFilesLimit: string | null
  /** Runnable tasks over the last minute, before the run: well above 0 means the machine was not quiet. */
  readonly loadAverage: number
  /** Commit of the code under test; `null` outside a repository. */
  readonly gitCommit: string | null
  /** Whether files differ from that commit. */
  readonly isGitDirty: boolean | null
  readonly startedAt: string
}

/** Describes this machine now. Cost: a few files and two runs of git. */
export function describeMachine(): MachineInfo {
  const gitStatus = git('status', '--porcelain')
  return {
    cpuModel: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    kernel: `${type()} ${release()}`,
    nodeVersion: process.version,
    congestionControl: readFirstLine('/proc/sys/net/ipv4/tcp_congestion_control'),
    cpuGovernor: readFirstLine('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor'),
    openFilesLimit: openFilesLimit(),
    loadAverage: Math.round((loadavg()[0] ?? 0) * 100) / 100,
    gitCommit: git('rev-parse', 'HEAD'),
    isGitDirty: gitStatus === null ? null : gitStatus !== '',
    startedAt: new Date().toISOString(),
  }
}

/** Processor time that all processes of the machine have used since it started, user and system, on all cores. */
export function machineCpuSeconds(): number {
  const busyMs = cpus().map(({ times }) => times.user + times.nice + times.sys + times.irq)
  return busyMs.reduce((sum, ms) => sum + ms, 0) / 1_000
}

function openFilesLimit(): string | null {
  // "Max open files            1024                 4096                 files"
  const row = readText('/proc/self/limits')?.match(/^Max open files\s+(\S+)/m)
  return row?.[1] ?? null
}

function git(...args: string[]): string | null {
  try {
    const cwd = fileURLToPath(new URL('../..', import.meta.url))
    return execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return null // Not a repository, or no git: the result says `null`.
  }
}

function readFirstLine(path: string): string | null {
  return readText(path)?.split('\n')[0]?.trim() ?? null
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null // This kernel has no such file: the result says `null`.
  }
}
