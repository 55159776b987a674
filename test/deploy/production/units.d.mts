export class Unit {
  constructor(name: string, folders: { readonly units: string; readonly run: string; readonly state: string })
  readonly environment: Readonly<Record<string, string>>
  readonly command: readonly string[]
}
