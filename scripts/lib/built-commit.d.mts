export function hasCommit(commit: string): Promise<boolean>
export function builtCommit(commit: string, cache: string): Promise<string>
export function ownEnvironment(): NodeJS.ProcessEnv
