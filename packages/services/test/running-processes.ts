import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { processTree } from '../src/process-tree.js'

/** The data folder of the one service of a kind that this process has running, as its command line has it. */
export function dataFolderOf(kind: string): string {
  // A title that a program writes itself has spaces between its arguments.
  const pattern = new RegExp(`/[^\\0 ]*/webmq-${kind}-\\w+`)
  const folders = processTree(process.pid).flatMap(({ pid }) => pattern.exec(traceOf(pid))?.[0] ?? [])
  const [folder, ...others] = new Set(folders)
  if (folder === undefined || others.length > 0) throw new Error(`expected one folder of ${kind}, found ${folders}`)
  return folder
}

/** Every process of the machine that was started with a service's data folder, with any parent. */
export function processesOf(folder: string): { readonly pid: number; readonly name: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && traceOf(Number(name)).includes(folder))
    .map((name) => ({ pid: Number(name), name: nameOf(Number(name)) }))
}

/** Command line, environment, and, as Redis writes its title over both, working folder; a zombie has none any more. */
function traceOf(pid: number): string {
  return `${read(pid, 'cmdline')}\0${read(pid, 'environ')}\0${workingFolderOf(pid)}`
}

function workingFolderOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return '' // It has ended meanwhile.
  }
}

function nameOf(pid: number): string {
  return read(pid, 'comm').trim()
}

/** Empty when the process has ended meanwhile. */
function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
