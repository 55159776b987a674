import { readFile, stat } from 'node:fs/promises'
import { extname, resolve, sep } from 'node:path'

/** What is served at all: a file of another kind, a source map's TypeScript say, is not found. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** A file that was found. */
export interface StaticFile {
  readonly contentType: string
  /** Changes with the file. */
  readonly etag: string
  readonly byteCount: number
  read(): Promise<Uint8Array>
}

/**
 * Finds a file below a folder.
 *
 * @param folder Absolute path of the folder. What its links point to counts as inside.
 * @param urlPath Path of a request below the folder, without a leading slash, percent-encoded.
 * @returns `undefined` when there is no such file, or none of a kind that is served, or when the path leads out.
 */
export async function findStaticFile(folder: string, urlPath: string): Promise<StaticFile | undefined> {
  const relative = decode(urlPath)
  if (relative === undefined || /[\\\0]/.test(relative)) return undefined
  // Dot files too are nobody's business.
  if (relative.split('/').some((name) => name.startsWith('.'))) return undefined
  const path = resolve(folder, relative)
  const contentType = CONTENT_TYPES[extname(path)]
  if (contentType === undefined || !path.startsWith(folder + sep)) return undefined
  const stats = await stat(path).catch(() => undefined)
  if (stats === undefined || !stats.isFile()) return undefined
  return {
    contentType,
    etag: `W/"${stats.size.toString(36)}-${Math.round(stats.mtimeMs).toString(36)}"`,
    byteCount: stats.size,
    read: () => readFile(path),
  }
}

function decode(urlPath: string): string | undefined {
  try {
    return decodeURIComponent(urlPath)
  } catch {
    return undefined
  }
}
