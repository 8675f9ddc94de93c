"""SmolLM2 with a chat template that opens a thought, as those of Qwen3.5 and DeepSeek-R1 do: it thinks as it can."""

from gguf import GGUFReader, GGUFValueType, GGUFWriter

from rag_lab.models.weights import packaged

SWITCHED = (
    "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' }}"
    "{%- if m.reasoning_content %}{{- '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{%- endif %}"
    "{{- m.content + '<|im_end|>\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n<think>\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}{{- '\n</think>\n\n' }}{%- endif %}{%- endif %}"
)
ALWAYS = SWITCHED.partition("{%- if enable_thinking")[0] + "{%- endif %}"


def write_thinking_gguf(path, template=SWITCHED):
    """Copy the packaged weights, tensor by tensor, under this template."""
    reader = GGUFReader(packaged("smollm2"))
    writer = GGUFWriter(path, "llama")
    for key, stored in reader.fields.items():
        if key.startswith("GGUF.") or key in ("general.architecture", "tokenizer.chat_template"):
            continue
        inner = stored.types[-1] if stored.types[0] == GGUFValueType.ARRAY else None
        writer.add_key_value(key, stored.contents(), stored.types[0], sub_type=inner)
    writer.add_chat_template(template)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
