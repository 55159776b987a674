import { readFile, stat } from 'node:fs/promises'
import { extname, resolve, sep } from 'node:path'

/** Served file types. Other files, such as TypeScript sources, are not found. */
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

/** A found file. */
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
 * @param folder Absolute path of the folder. Targets of links in it count as inside.
 * @param urlPath Path below the folder, percent-encoded, without a leading slash.
 * @returns `undefined` when the file does not exist, its type is not served, or the path leaves the folder.
 */
export async function findStaticFile(folder: string, urlPath: string): Promise<StaticFile | undefined> {
  const relative = decode(urlPath)
  if (relative === undefined || /[\\\0]/.test(relative)) return undefined
  // Dot files are never served.
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
