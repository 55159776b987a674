/**
 * The part of [Standard Schema](https://standardschema.dev) 1.0 that the client uses. Zod, Valibot, ArkType and others
 * make such objects; their functions may have properties too.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    /** Never set: the compiler reads the types from here. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

/** What a schema says of a value. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

/** Why a value is not valid. */
export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}
