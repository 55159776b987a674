import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const FAULTS = ['full disk', 'closed pipe', 'stalled pipe', 'EIO', 'read-only', 'gone folder'] as const
export const TARGETS = ['stderr', 'stdout', 'audit', 'pid'] as const
export const PHASES = ['start', 'run', 'drain'] as const
export type Fault = (typeof FAULTS)[number]
export type Target = (typeof TARGETS)[number]
export type Phase = (typeof PHASES)[number]

/** What a node is given as one of its outputs, and what makes it fail. */
export interface Output {
  /** For the audit log and the pid file. */
  readonly file: string
  /** Opened as a shell opens it, for standard output and standard error. */
  readonly descriptor: number | undefined
  /** From now on it fails. */
  fail(): void | Promise<void>
}

const { O_APPEND, O_CREAT, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants
const isRoot = process.getuid?.() === 0

/** Makes outputs that fail, and clears away what they needed. A fault that this machine does not allow is an error that says why. */
export class Faults {
  readonly #folder = mkdtempSync(join(tmpdir(), 'webmq-machine-'))
  readonly #cleanups: (() => void)[] = [() => rmSync(this.#folder, { recursive: true, force: true })]
  #count = 0

  clear(): void {
    for (const cleanup of this.#cleanups.reverse()) cleanup()
    this.#cleanups.length = 0
  }

  async output(fault: Fault, target: Target, phase: Phase): Promise<Output> {
    const folder = join(this.#folder, `${this.#count++}`)
    mkdirSync(folder)
    const file = join(folder, 'output')
    const isStream = target === 'stderr' || target === 'stdout'
    switch (fault) {
      case 'full disk':
        return this.#fullDisk(folder, file, isStream)
      case 'closed pipe':
      case 'stalled pipe':
        return this.#pipe(file, isStream, fault === 'closed pipe')
      case 'EIO':
        return phase === 'start' || target === 'pid' ? this.#memory(file, isStream) : await this.#terminal(isStream)
      case 'read-only':
        return isStream ? this.#readOnlyStream(folder, file, phase) : this.#readOnlyFolder(folder, file)
      case 'gone folder':
        return { file, descriptor: this.#open(file, isStream), fail: () => rmSync(folder, { recursive: true }) }
    }
  }

  #open(file: string, isStream: boolean): number | undefined {
    return isStream ? this.#closed(openSync(file, O_WRONLY | O_APPEND | O_CREAT)) : undefined
  }

  #closed(descriptor: number): number {
    this.#cleanups.push(() => closeSync(descriptor))
    return descriptor
  }

  /** A file system of 256 KiB. */
  #fullDisk(folder: string, file: string, isStream: boolean): Output {
    this.#mount(folder, '-t', 'tmpfs', '-o', 'size=256k', 'none')
    const fill = (name: string, bytes: number) => {
      const descriptor = openSync(name, O_WRONLY | O_APPEND | O_CREAT)
      try {
        for (;;) writeSync(descriptor, Buffer.alloc(bytes))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      } finally {
        closeSync(descriptor)
      }
    }
    return {
      file,
      descriptor: this.#open(file, isStream),
      fail: () => {
        fill(join(folder, 'filler'), 4_096)
        // What is left of the last page of its file.
        if (isStream) fill(file, 1)
      },
    }
  }

  #pipe(file: string, isStream: boolean, isClosed: boolean): Output {
    execFileSync('mkfifo', [file])
    let reader: number | undefined = openSync(file, O_RDONLY | O_NONBLOCK)
    this.#cleanups.push(() => reader !== undefined && closeSync(reader))
    const fail = () => {
      if (isClosed && reader !== undefined) {
        closeSync(reader)
        reader = undefined
      } else fillPipe(file)
    }
    return { file, descriptor: isStream ? this.#closed(openSync(file, O_WRONLY)) : undefined, fail }
  }

  /** The first page of a process is never there: writing to it fails with EIO. */
  #memory(file: string, isStream: boolean): Output {
    const memory = '/proc/self/mem'
    if (!isStream) symlinkSync(memory, file)
    return { file, descriptor: isStream ? this.#closed(openSync(memory, 'r+')) : undefined, fail: () => undefined }
  }

  /** A terminal that hangs up. */
  async #terminal(isStream: boolean): Promise<Output> {
    const program = 'import os, pty, sys; m, s = pty.openpty(); print(os.ttyname(s), flush=True); os.close(s)'
    const drain = '\nwhile True:\n  try: os.read(m, 65536)\n  except OSError: import time; time.sleep(0.01)'
    const helper = spawn('python3', ['-c', program + drain], { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#cleanups.push(() => helper.kill('SIGKILL'))
    const [name] = (await once(helper.stdout, 'data')) as [Buffer]
    const file = name.toString().trim()
    return {
      file,
      descriptor: isStream ? this.#closed(openSync(file, O_WRONLY | constants.O_NOCTTY)) : undefined,
      fail: () => hangUp(helper),
    }
  }

  /** From the start, a descriptor that is for reading alone. Later, a file system that has met an error. */
  #readOnlyStream(folder: string, file: string, phase: Phase): Output {
    if (phase === 'start') return { file, descriptor: this.#closed(openSync('/dev/null', 'r')), fail: () => undefined }
    const image = `${folder}.image`
    execFileSync('truncate', ['-s', '4M', image])
    execFileSync('mkfs.ext4', ['-q', '-O', '^has_journal', image])
    this.#mount(folder, '-o', 'loop,errors=remount-ro', image)
    const device = execFileSync('findmnt', ['-n', '-o', 'SOURCE', folder], { encoding: 'utf8' }).trim()
    const switchFile = `/sys/fs/ext4/${device.slice('/dev/'.length)}/trigger_fs_error`
    return { file, descriptor: this.#open(file, true), fail: () => writeFileSync(switchFile, '1') }
  }

  /** Root may write where others may not, but not to a file system that is mounted for reading. */
  #readOnlyFolder(folder: string, file: string): Output {
    const fail = () => {
      if (isRoot) this.#mount(folder, '--bind', '-o', 'ro', folder)
      else chmodSync(folder, 0o555)
    }
    if (!isRoot) this.#cleanups.push(() => chmodSync(folder, 0o755))
    return { file, descriptor: undefined, fail }
  }

  #mount(folder: string, ...what: readonly string[]): void {
    execFileSync('mount', [...what, folder], { stdio: ['ignore', 'ignore', 'pipe'] })
    this.#cleanups.push(() => execFileSync('umount', ['--lazy', folder]))
  }
}

/** What a pipe holds, until it takes no byte. */
function fillPipe(file: string): void {
  const writer = openSync(file, O_WRONLY | O_NONBLOCK)
  try {
    for (const bytes of [4_096, 1]) for (;;) if (!wrote(writer, bytes)) break
  } finally {
    closeSync(writer)
  }
}

function wrote(descriptor: number, bytes: number): boolean {
  try {
    return writeSync(descriptor, Buffer.alloc(bytes, '\n')) > 0
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false
    throw error
  }
}

async function hangUp(helper: ChildProcess): Promise<void> {
  const exited = once(helper, 'exit')
  helper.kill('SIGKILL')
  await exited
}
