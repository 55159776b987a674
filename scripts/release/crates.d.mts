export declare function withVersion(manifest: string, version: string): string
export declare function withVersions(lock: string, version: string): string
