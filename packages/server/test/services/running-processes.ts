import { readdirSync, readFileSync } from 'node:fs'
import { processTree } from '../../src/services/process-tree.js'

/** The data folder of the one service of a kind that this process has running, as its command line has it. */
export function dataFolderOf(kind: string): string {
  const pattern = new RegExp(`/[^\\0]*/webmq-${kind}-\\w+`)
  const folders = processTree(process.pid).flatMap(({ pid }) => pattern.exec(traceOf(pid))?.[0] ?? [])
  const [folder, ...others] = new Set(folders)
  if (folder === undefined || others.length > 0) throw new Error(`expected one folder of ${kind}, found ${folders}`)
  return folder
}

/** Every process of the machine, whoever its parent is by now, that was started with a service's data folder. */
export function processesOf(folder: string): { readonly pid: number; readonly name: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && traceOf(Number(name)).includes(folder))
    .map((name) => ({ pid: Number(name), name: nameOf(Number(name)) }))
}

/** Command line and environment; a zombie has neither any more. */
function traceOf(pid: number): string {
  return `${read(pid, 'cmdline')}\0${read(pid, 'environ')}`
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
