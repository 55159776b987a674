/** Path of Node's program of a major version, from npm's binary packages. */
export function installedNode(major: number): Promise<string>
/** Path of Bun. */
export function bunProgram(): Promise<string>
/** Path of Deno. */
export function denoProgram(): Promise<string>
