/** The sizes of the built client: of its core, and of each part beyond the core. */
export function clientSizes(): Promise<{ name: string; bytes: number }[]>
