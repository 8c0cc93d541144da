#!/bin/sh
# Train the models of the attention maps in the documentation, and store the maps in docs/maps. Took an
# hour and 20 minutes on two cores, next to other work; needs Chromium, and Multi30k and SICK in REGARD_DATA.
# Run it in the root of the repository: sh docs/maps/make.sh. Finished trainings are cached.
set -eu
: "${REGARD_HOME:=$PWD/workspace}" "${REGARD_DATA:=$REGARD_HOME/data}"
export REGARD_HOME REGARD_DATA

# Store the map of a model, map NAME PIPELINE OPTION INPUT...; OPTION is --heads, or -- for none.
map() {
  name=$1 pipeline=$2 option=$3
  shift 3
  folder=$(ls -td "$REGARD_HOME/pipelines/$pipeline"/artifacts/Trainer/model/*/Format-Serving | head -n 1)
  regard predict "$folder" --picture "$REGARD_HOME/map.html" -- "$@"
  python docs/attention_map.py $option "$REGARD_HOME/map.html" "docs/maps/$name"
}

train() {
  regard run "$@" --to Trainer
}

dates="$REGARD_HOME/data/dates"
regard data generate quickstart --rows 60000 --out "$REGARD_HOME/data/all-dates"
mkdir -p "$dates"
for split in train eval test; do
  zcat "$REGARD_HOME/data/all-dates/$split.tsv.gz" |
    awk -F'\t' -v OFS='\t' '$3 == "date" && $4 ~ /^en/ {print $1, $2}' | gzip -n > "$dates/$split.tsv.gz"
done
regard compare configs/compare/attention-dates.yaml
for label in additive concat dot scaled-dot general low-rank cosine location \
  hard sparsemax top-k thresholded local-m local-p; do
  map "$label" "attention-dates-$label" -- "Friday, 20 November 2026"
done
map heads attention-dates-transformer --heads "Friday, 20 November 2026"

# The model `additive` before and during its training: the schedule is that of its 300 steps. One step with a learning
# rate of 1e-12 leaves the initial weights as they are.
during() {
  label=$1
  shift
  regard compare configs/compare/attention-dates.yaml --only additive --name "attention-dates-$label" "$@" \
    --set 'training.schedule={type: cosine, warmup_steps: 50, steps: 300}'
  map "additive-$label" "attention-dates-$label-additive" -- "Friday, 20 November 2026"
}
during untrained --set training.max_steps=1 --set training.learning_rate=1e-12
for steps in 25 50 75 100; do
  during "$steps-steps" --set "training.max_steps=$steps"
done

train configs/multi30k-en-de.yaml --set tokenizer.vocab_size=4000 --set model.embedding=128 \
  --set model.encoder.units=128 --set training.max_steps=800 --set training.max_epochs=null \
  --set 'training.schedule={type: cosine, warmup_steps: 100}'
map translation multi30k-en-de -- "Two brown dogs are running through the snow."

train configs/multi30k-en-de.yaml --set name=multi30k-bahdanau --set tokenizer.vocab_size=4000 \
  --set model.embedding=128 --set 'model.encoder={type: recurrent, cell: gru, units: 128}' \
  --set 'model.decoder={type: bahdanau, cell: gru, units: 256}' --set model.attention.score=additive \
  --set training.max_steps=800 --set training.max_epochs=null \
  --set 'training.schedule={type: cosine, warmup_steps: 100}'
map bahdanau-translation multi30k-bahdanau -- "Two men and a lady are standing outside."

regard data generate copying --rows 2000
train configs/summarisation-copying-unknown.yaml
map summarisation summarisation-copying-unknown -- \
  "Zaniox was invited outside the court by Drautod, and Chainaip painted a fence."

# The default score, `general`, leaves the weights of the words nearly equal on so little data.
train configs/similarity-sick.yaml --set training.max_epochs=4 \
  --set 'model.cross={units: 200, attention: {score: cosine}}'
map similarity similarity-sick -- "A man is playing a guitar." "A woman is playing the flute."

regard data generate stories
train configs/span-stories.yaml
map reading span-stories -- \
  "Giulia took the key. Niccolò moved to the kitchen. Giulia went to the garden." "Where is the key?"

regard data generate hull
train configs/pointer-hull.yaml --set training.max_steps=1500
map pointer pointer-hull -- "[[0.12, 0.2], [0.55, 0.08], [0.9, 0.3], [0.45, 0.45], [0.62, 0.6],
  [0.2, 0.55], [0.84, 0.78], [0.4, 0.92], [0.3, 0.35], [0.7, 0.38]]"
