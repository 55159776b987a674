/** Where a mesh tells what happens to its links; a logger of the server fits. */
export interface MeshLog {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}
